"""Iceberg reads a table in vectors, or row by row if a scan has an array among its columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.history import run as history_run
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, record, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def scans(rows: Any, table: str) -> list[tuple[bool, str]]:
    """Of each scan of a table in a plan: whether it reads in vectors, and its columns."""
    leaves = rows._jdf.queryExecution().sparkPlan().collectLeaves()
    found = [leaves.apply(number) for number in range(leaves.size())]
    return [
        (leaf.supportsColumnar(), leaf.output().mkString(" "))
        for leaf in found
        if table in leaf.toString()
    ]


def test_values_of_open_versions_are_read_in_vectors(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    people = start(
        make_dbt_project(tmp_path, schema="reads_in_vectors"), spark, table_format, MODELS
    )
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run")
    seen: list[tuple[bool, str]] = []
    next_batch = history_run.next_batch

    def watched(*arguments: Any, **options: Any) -> Any:
        found = next_batch(*arguments, **options)
        assert found is not None
        seen.extend(scans(found.rows, "people_history"))
        return found

    monkeypatch.setattr(history_run, "next_batch", watched)
    people.append(PEOPLE, [record(3, "B", 1, "Ann"), record(3, "U", 1, "Abe")])
    people.dbt("run")
    assert people.rows("history", "name, changed_columns", "valid_from_seq, id") == [
        ("Ann", None),
        ("Bob", None),
        ("Abe", ["name"]),
    ]
    assert sorted((in_vectors, "name#" in names) for in_vectors, names in seen) == [
        (False, False),
        (True, True),
    ]
    assert not any("unknown_columns#" in names for _, names in seen)
