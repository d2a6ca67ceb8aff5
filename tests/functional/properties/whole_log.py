"""The history of many streams by the project's own SQL, from the whole log at once, without dbt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.functional.log_reader import read_rows
from tests.functional.properties.stream_tables import (
    BATCHES,
    COLUMNS,
    KEY,
    LOG_SCHEMA,
    StreamTable,
)
from tests.macro_renderer import MACROS
from tests.versions_sql import versions_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def history_sql(table: StreamTable, log: str, macros: Path = MACROS) -> str:
    """The statement for a log, with the steps that the table's shape needs."""
    shape = table.shape
    data = [name for name in COLUMNS if name not in KEY]
    sql = versions_sql(
        log,
        COLUMNS,
        KEY,
        macros,
        tracked=[name for name in data if name in shape.options.tracked],
        carried=shape.partly_known,
        base={"kind": shape.base} if shape.base else None,
        has_ends=bool(shape.events),
        scopes=["a"] if "truncate some" in dict(shape.events).values() else [],
        has_moves=shape.moves,
        has_incomplete_key_changes=shape.has_incomplete_key_changes,
    )
    return f"{sql}\nselect * from versions"


def history_of_all(
    spark: SparkSession, table: StreamTable, macros: Path = MACROS
) -> list[dict[str, Any]]:
    """The versions of all streams of a table."""
    rows = [row for batch in range(1, BATCHES + 1) for row in table.rows(batch)]
    log = f"log_of_{table.shape.name}"
    spark.createDataFrame(rows, LOG_SCHEMA).createOrReplaceTempView(log)
    versions = spark.sql(history_sql(table, log, macros)).drop("_version_id", "_is_seed")
    return read_rows(versions)
