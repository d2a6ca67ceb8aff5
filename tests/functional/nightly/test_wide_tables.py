"""Tables of many columns: the text of their staging views is longer than Derby holds at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project
from tests.functional.people import HEADERS, STAGING, seq, start
from tests.functional.project_files import changes_model
from tests.qlik_messages import change

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

NAMES = [f"a_column_with_a_rather_long_name_{number:04d}" for number in range(1000)]


def test_a_change_table_of_a_thousand_columns_is_staged_and_logged(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    models = {**STAGING, **changes_model("people", "stg_people")}
    people = start(make_dbt_project(tmp_path, schema="wide"), spark, table_format, models)
    # three header columns, the key, and the last bit of the mask is the last column
    mask = "8" + "0" * ((3 + len(NAMES)) // 4)
    columns = {
        **HEADERS,
        "header__change_mask": "string",
        "id": "int",
        **dict.fromkeys(NAMES, "string"),
    }
    values = [f"v{number}" for number in range(len(NAMES) - 1)]
    people.land(
        columns,
        [
            (seq(1), "I", None, 1, *values, "old"),
            (seq(2), "B", None, 1, *values, "old"),
            (seq(2), "U", mask, 1, *values, "new"),
        ],
    )
    people.dbt("run")
    shown = f"change_oper, declared_changed_columns, {NAMES[0]}, {NAMES[-1]}, before.{NAMES[-1]}"
    assert people.rows("changes", shown, "change_seq") == [
        ("I", None, "v0", "old", None),
        ("U", [NAMES[-1]], "v0", "new", "old"),
    ]


def test_messages_of_a_thousand_columns_are_staged(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    dbt = make_dbt_project(tmp_path, schema="wide_messages")
    project = MessagesProject(dbt, spark, table_format)
    columns = {"id": "int", **dict.fromkeys(NAMES, "decimal(12,2)")}
    tables = {"broad": ("raw_wide", {"key": ["id"]}, columns)}
    write_project(tmp_path, {"raw_wide": {}}, tables, staged_only=["broad"])
    data = {"id": "1", **{name: f"{number}.50" for number, name in enumerate(NAMES)}}
    project.land("raw_wide", [Message("broad", change("INSERT", 1, data))])
    dbt("run")
    (row,) = project.rows("stg_broad", f"change_oper, id, known_columns, {NAMES[0]}, {NAMES[-1]}")
    assert row[:3] == ("I", 1, None)
    assert [str(value) for value in row[3:]] == ["0.50", "999.50"]
