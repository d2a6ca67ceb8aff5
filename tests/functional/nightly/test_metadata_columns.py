"""Metadata that only some systems have: in logs, rejected records, and histories that want it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, MODELS, seq, start
from tests.functional.project_files import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    **HEADERS,
    "header__stream_position": "string",
    "header__user": "string",
    "id": "int",
    "name": "string",
}
STAGED = "stage_qlik_change_table('raw', 'people__ct', base='people')"
STAGING = "staging/stg_people.sql"
BASE = {"base": {"kind": "frozen"}}


def test_metadata_reaches_a_log_history_and_rejected_records_that_lacked_it(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    # as a version of this project staged it that did not know the column
    before = {STAGING: f"select * except (stream_position) from ({{{{ {STAGED} }}}}) as staged\n"}
    project = make_dbt_project(tmp_path, schema="metadata")
    people = start(project, spark, table_format, {**MODELS, **before})
    people.declare(**BASE)
    landed: list[tuple[Any, ...]] = [
        (seq(1), "I", "p1", "ann", 1, "Ann"),
        (None, "I", "p?", "ann", 2, "Bob"),
    ]
    people.land(COLUMNS, landed)
    spark.sql(
        f"create table metadata_raw.people using {table_format} as select 9 as id, 'Zoe' as name"
    )
    people.dbt("run")
    assert "stream_position" not in people.types("changes")

    write_files(project.path / "models", {STAGING: f"{{{{ {STAGED} }}}}\n"})
    metadata = {"history_metadata": ["stream_position", "user"], "header_columns": ["user"]}
    people.declare(**BASE, **metadata)
    landed += [
        (seq(3), "B", "p3", "bob", 1, "Ann"),
        (seq(3), "U", "p3", "bob", 1, "Ada"),
        (None, "D", "p!", "bob", 2, "Bob"),
    ]
    people.land(COLUMNS, landed)
    people.dbt("run")
    assert people.rows(
        "changes", "change_oper, stream_position, user, name", "change_seq, name desc"
    ) == [
        ("L", None, None, "Zoe"),
        ("L", None, None, None),
        ("I", None, None, "Ann"),
        ("U", "p3", "bob", "Ada"),
    ]
    assert people.rows(
        "changes_rejected", "reject_reason, stream_position, user", "change_oper"
    ) == [
        ("null_change_seq", "p!", "bob"),
        ("null_change_seq", None, None),
    ]
    shown = "id, name, stream_position, user, opened_by"
    assert people.rows("history", shown, "id, valid_from_seq") == [
        (1, "Ann", None, None, "I"),
        (1, "Ada", "p3", "bob", "U"),
        (9, "Zoe", None, None, "L"),
    ]
    assert not {"stream_position", "user"} & {*people.types("current")}

    with people.untouched():
        people.dbt("run")

    # a late change, so that a key is built again
    landed += [(seq(2), "B", "p2", "cid", 1, "Ann"), (seq(2), "U", "p2", "cid", 1, "Amy")]
    people.land(COLUMNS, landed)
    people.dbt("run")
    history = [
        (1, "Ann", None, None, "I"),
        (1, "Amy", "p2", "cid", "U"),
        (1, "Ada", "p3", "bob", "U"),
        (9, "Zoe", None, None, "L"),
    ]
    assert people.rows("history", shown, "id, valid_from_seq") == history
    people.dbt("run", "--full-refresh", "--select", "people_history")
    assert people.rows("history", shown, "id, valid_from_seq") == history

    # a history that has the columns keeps and fills them
    people.declare(**BASE, header_columns=["user"])
    landed += [(seq(4), "I", "p4", "bob", 4, "Dan")]
    people.land(COLUMNS, landed)
    people.dbt("build")
    assert people.rows("history", shown, "id, valid_from_seq") == [
        *history[:3],
        (4, "Dan", "p4", "bob", "I"),
        history[3],
    ]
    assert not {"stream_position", "user"} & {*people.types("current")}

    people.declare(**BASE, history_metadata=["stream_position"])
    with people.untouched():
        message = people.dbt.error_of("run", "--select", "stg_people", "people_changes")
    assert (
        "metadata.people_changes: its column `user` is metadata of the change, and by the settings "
        "of source table raw.people__ct it would be a data column. Nothing was written. Fix: "
        "restore the setting, such as `header_columns`, or rebuild the log: "
    ) in message
