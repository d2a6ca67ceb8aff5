"""The adapter methods that macros call, and what each answers while dbt only parses."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.descriptions import describe_columns
from dbt_afterimage.settings import SettingsError, moment_kind, parse_settings
from dbt_afterimage.spark_adapter.errors import without_plan


def afterimage_settings(self: Any, source: Any) -> dict[str, Any]:
    """Validated settings of one source table, all defaults filled in.

    Args:
        self: dbt's adapter.
        source: the table's entry in dbt's graph (a source definition as a mapping).

    Returns:
        The settings by name, with ``declared_columns`` (name and data_type) of the entry's columns.

    Raises:
        DbtRuntimeError: a setting is missing, misspelt or not allowed; names table, key and cure.
    """
    try:
        return parse_settings(source)
    except SettingsError as error:
        raise DbtRuntimeError(str(error)) from error


def afterimage_moment_kind(self: Any, text: str) -> str | None:
    """What names a moment: `change_seq`, `timestamp`, or None for text that is neither."""
    return moment_kind(text)


def afterimage_connection_method(self: Any) -> str:
    """The `method` of the target's profile: `session`, `thrift`, ..."""
    return str(self.config.credentials.method.value)


def afterimage_table_format(self: Any) -> str:
    """Table format of the target's default catalog: `iceberg` or `delta`.

    Raises:
        DbtRuntimeError: the catalog is neither; history needs MERGE, which plain Parquet lacks.
    """
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    parameters = self.config.credentials.server_side_parameters

    def setting(name: str, default: str) -> str:
        value = session.conf.get(name, default) if session else parameters.get(name, default)
        return str(value)

    catalog = setting("spark.sql.defaultCatalog", "spark_catalog")
    implementation = setting(f"spark.sql.catalog.{catalog}", "Spark's own session catalog")
    for table_format in ("iceberg", "delta"):
        if table_format in implementation.lower():
            return table_format
    raise DbtRuntimeError(
        f"The target's default catalog `{catalog}` is {implementation}; its tables cannot be "
        "merged into. Allowed: an Iceberg or a Delta catalog. Cure: take one from "
        "profiles.yml.example."
    )


def afterimage_create_table(
    self: Any,
    relation: Any,
    select: str,
    descriptions: dict[str, str],
    partition_by: list[str],
    properties: dict[str, str],
) -> None:
    """`create or replace table ... as select`, with a comment on each column, in one commit.

    SQL has no place for column comments in such a statement, and one `alter` per column afterwards
    is one commit each.

    Args:
        self: dbt's adapter.
        relation: the table.
        select: the statement that yields its rows.
        descriptions: column name -> description.
        partition_by: columns.
        properties: table properties, the table's `comment` among them.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    session = SparkSession.builder.getOrCreate()
    try:
        rows = describe_columns(session.sql(select), descriptions)
        writer = rows.writeTo(str(relation)).using(afterimage_table_format(self))
        for name, value in properties.items():
            writer = writer.tableProperty(name, value)
        if partition_by:
            writer = writer.partitionedBy(*[F.col(name) for name in partition_by])
        writer.createOrReplace()
    except AnalysisException as error:
        raise DbtRuntimeError(without_plan(str(error))) from error


def afterimage_land_demo(self: Any, batch: int, schema: str, scale: int, seed: int) -> None:
    """Land one batch of the generated demo as raw tables of `schema`; batch 1 starts anew."""
    from pyspark.sql import SparkSession

    from dbt_afterimage.demo.generate import generate
    from dbt_afterimage.demo.land import land

    table_format = afterimage_table_format(self)
    data = generate(scale=scale, seed=seed, batches=max(batch, 2))
    session = SparkSession.builder.getOrCreate()
    land(
        session, data.batches[batch - 1], schema, "delta" if table_format == "delta" else "iceberg"
    )


METHODS: dict[str, tuple[Any, Any]] = {
    "afterimage_settings": (afterimage_settings, {}),
    "afterimage_moment_kind": (afterimage_moment_kind, None),
    "afterimage_connection_method": (afterimage_connection_method, "session"),
    "afterimage_create_table": (afterimage_create_table, None),
    "afterimage_land_demo": (afterimage_land_demo, None),
    "afterimage_table_format": (afterimage_table_format, "iceberg"),
}
