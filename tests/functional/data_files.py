"""The data files of a table, and which of them hold certain rows: the same for Iceberg and Delta.

A file is known by its name, which both formats make unique. Files are never changed in place: rows
that are deleted from one are named by position-delete files (Iceberg) or deletion vectors (Delta).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class DataFile:
    """A data file as the table has it now.

    is_current: its partition of a history table.
    deletes: what deletes rows from it, by name; empty where it is whole.
    """

    is_current: bool
    deletes: frozenset[str]


def data_files(spark: SparkSession, table: str, table_format: str) -> dict[str, DataFile]:
    """The data files of a history table, by name."""
    if table_format == "iceberg":
        return _iceberg_files(spark, table)
    return _delta_files(delta_log(spark, table))


def delta_log(spark: SparkSession, table: str) -> Path:
    """The folder of a Delta table's commits and checkpoints."""
    location = spark.sql(f"describe detail {table}").collect()[0]["location"]
    return Path(unquote(urlparse(location).path)) / "_delta_log"


def files_with(spark: SparkSession, table: str, table_format: str, condition: str) -> set[str]:
    """Names of the data files that hold a row that satisfies a condition."""
    path = "_file" if table_format == "iceberg" else "_metadata.file_path"
    rows = spark.table(table).where(condition).selectExpr(f"{path} as path").distinct().collect()
    return {_name(row["path"]) for row in rows}


def _iceberg_files(spark: SparkSession, table: str) -> dict[str, DataFile]:
    deletes = defaultdict(set)
    pairs = spark.sql(f"select distinct file_path, delete_file_path from {table}.position_deletes")
    for row in pairs.collect():
        deletes[_name(row["file_path"])].add(_name(row["delete_file_path"]))
    files = spark.sql(
        f"select file_path, partition.is_current as is_current from {table}.files where content = 0"
    ).collect()
    return {
        _name(row["file_path"]): DataFile(
            row["is_current"], frozenset(deletes[_name(row["file_path"])])
        )
        for row in files
    }


def _delta_files(log: Path) -> dict[str, DataFile]:
    """Replays the commits of a Delta log; tests' tables are so young that it holds all of them."""
    files: dict[str, DataFile] = {}
    for commit in sorted(log.glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        # one commit removes a file and adds it again, with another deletion vector, in any order
        for removed in _of_kind(actions, "remove"):
            files.pop(_name(removed["path"]), None)
        for added in _of_kind(actions, "add"):
            vector = added.get("deletionVector")
            files[_name(added["path"])] = DataFile(
                added["partitionValues"]["is_current"] == "true",
                frozenset([json.dumps(vector, sort_keys=True)] if vector else []),
            )
    return files


def _of_kind(actions: Iterable[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
