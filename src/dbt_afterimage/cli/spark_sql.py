"""`afterimage spark-sql`: Spark's SQL shell on the tables of a target, to read and to write."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.session import load_profile


@command(
    "spark-sql",
    example="afterimage spark-sql\n"
    'afterimage spark-sql -e "update orders_changes_rejected set resolved_at = now() where ..."',
)
def spark_sql(
    execute: Annotated[
        str | None, typer.Option("-e", "--execute", help="Run these statements and end.")
    ] = None,
    target: TargetOption = None,
) -> None:
    """Open Spark's SQL shell with the settings and in the schema of the target.

    The schema is created if it is missing. The shell can write to every table: do not change tables
    while a dbt run writes to them.
    """
    import pyspark

    credentials = load_profile(target).credentials
    settings = {
        # a session of dbt-spark has Hive's catalog unless the profile says otherwise
        "spark.sql.catalogImplementation": "hive",
        **{name: str(value) for name, value in credentials.server_side_parameters.items()},
        "spark.log.level": "ERROR",
    }
    program = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    # --database searches spark_catalog only, whatever the default catalog is
    catalog = settings.get("spark.sql.defaultCatalog", "spark_catalog")
    with tempfile.TemporaryDirectory(prefix="afterimage_sql_") as name:
        # In a file of a folder that only this user can read: other users see command lines.
        folder = Path(name)
        lines = [
            "{}={}\n".format(setting, value.replace("\\", "\\\\"))
            for setting, value in settings.items()
        ]
        (folder / "spark.conf").write_text("".join(lines), encoding="utf-8")
        schema = f"{catalog}.{credentials.schema}"
        # before the first run there is no schema, and raw tables are landed before that
        (folder / "use.sql").write_text(
            f"create schema if not exists {schema};\nuse {schema};\n", encoding="utf-8"
        )
        arguments = ["--properties-file", str(folder / "spark.conf"), "-i", str(folder / "use.sql")]
        if execute is not None:
            arguments += ["-e", execute]
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        done = subprocess.run([str(program), *arguments], env=environment, check=False)
    raise typer.Exit(done.returncode)
