"""`afterimage spark-sql`: Spark's SQL shell on the tables of a target, to read and to write."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from dbt_afterimage.cli.commands.doctor.machine import java_check
from dbt_afterimage.cli.frame import TargetOption, command
from dbt_afterimage.cli.support.project_session import SparkNotStartedError, load_profile
from dbt_afterimage.spark.ivy import fetch_packages
from dbt_afterimage.spark.java import java_says
from dbt_afterimage.spark.launch import launch_arguments, private_settings, program


@command(
    "spark-sql",
    example="afterimage spark-sql\n"
    'afterimage spark-sql -e "update orders_changes_rejected set resolved_at = now() where ..."',
)
def spark_sql(
    execute: Annotated[
        str | None, typer.Option("-e", "--execute", help="Run these statements and end.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--file",
            help="Run the statements of a file and end.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    target: TargetOption = None,
) -> None:
    """Open Spark's SQL shell with the settings and in the schema of the target.

    The schema is created if it is missing. The shell can write to every table: do not change tables
    while a dbt run writes to them.
    """
    java = java_check(java_says())
    if java.state == "failed":
        raise SparkNotStartedError(f"`spark-sql`: {java.text}. Fix: {java.fix}.")
    credentials = load_profile(target).credentials
    settings = {
        # a session of dbt-spark has Hive's catalog unless the profile says otherwise
        "spark.sql.catalogImplementation": "hive",
        **credentials.server_side_parameters,
        "spark.log.level": "ERROR",
    }
    # --database searches spark_catalog only, whatever the default catalog is
    schema = f"{settings.get('spark.sql.defaultCatalog', 'spark_catalog')}.{credentials.schema}"
    fetch_packages(settings)
    with (
        launch_arguments({**private_settings(settings), **settings}) as arguments,
        tempfile.NamedTemporaryFile("w", prefix="afterimage_", suffix=".sql") as use,
    ):
        # before the first run there is no schema, and raw tables are landed before that
        use.write(f"create schema if not exists {schema};\nuse {schema};\n")
        use.flush()
        arguments += ["-i", use.name]
        if execute is not None:
            arguments += ["-e", execute]
        if file is not None:
            arguments += ["-f", str(file.resolve())]
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        is_shell = execute is None and file is None
        # besides errors, it has what Ivy and Spark print when they start
        said = None if is_shell else subprocess.PIPE
        command = [program("spark-sql"), *arguments]
        done = subprocess.run(command, env=environment, stderr=said, text=True, check=False)
    if done.returncode and done.stderr:
        typer.echo(_errors(done.stderr), err=True)
    raise typer.Exit(done.returncode)


def _errors(said: str) -> str:
    """The output since Spark ran, without stack traces."""
    lines = said.rpartition("Spark master: ")[2].splitlines()
    return "\n".join(line for line in lines if not line.startswith(("\tat ", "Time taken: ")))
