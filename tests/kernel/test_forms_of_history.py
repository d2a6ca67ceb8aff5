"""Forms of the history chain: Spark finds every column that a transform reads.

A transform is in the chain only where a table, its changes and the path of the run ask for it. So a
column that one of them fails to pass on is missed in some forms only. Spark analyses each form and
runs none.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from dbt_afterimage.history.differences import changed_versions, differing_versions
from dbt_afterimage.history.names import REPLAY_FROM
from dbt_afterimage.history.profile import ChangeContent
from dbt_afterimage.history.rules import forward_fill
from dbt_afterimage.history.table import HistoryTable
from dbt_afterimage.history.versions import versions
from dbt_afterimage.storage.local_relation import local_rows
from tests.log_lines import COLUMNS, IMAGE, SCHEMA
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = (
    f"{IMAGE}, valid_from timestamp, valid_to timestamp, valid_from_seq string, "
    "valid_to_seq string, is_current boolean, opened_by string, closed_by string, "
    "changed_columns array<string>, unknown_columns array<string>, transaction_id string, "
    "closed_by_transaction_id string, people_id string"
)
KEY_CHANGES: tuple[dict[str, bool], ...] = (
    {"has_key_changes": False},
    {"has_key_changes": True},
    {"has_key_changes": True, "has_incomplete_key_changes": True},
)


@pytest.fixture(autouse=True)
def no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint would run the plan."""
    monkeypatch.setattr(forward_fill, "checkpoint", lambda rows: rows)


def analyse(spark: SparkSession, path: str, table: HistoryTable, content: ChangeContent) -> None:
    changes = local_rows(spark, [], f"{SCHEMA}, transaction_event string")
    stored = local_rows(spark, [], f"{VERSIONS}, transaction_event string")
    keys = local_rows(spark, [], f"id int, name string, city string, {REPLAY_FROM} string")
    keys = keys.select(*table.key, REPLAY_FROM)
    if path == "incremental":
        changed_versions(versions(changes, table, content, checkpoints=[], prior=stored))
    elif path == "replay":
        stored = stored.join(keys, list(table.key))
        differing_versions(
            versions(
                changes,
                table,
                content,
                checkpoints=[],
                affected_keys=keys,
                prior=stored,
                replays=True,
                has_few_keys=True,
            ),
            stored,
            "people_id",
        )
    else:
        keys = keys.drop(REPLAY_FROM)
        affected = keys if path == "keys" else None
        made = versions(changes, table, content, checkpoints=[], affected_keys=affected)
        differing_versions(made, stored, "people_id")


@pytest.mark.parametrize("base", [None, *nightly("frozen"), "live"])
@pytest.mark.parametrize("path", ["incremental", "replay", "keys", "rebuild"])
def test_every_transform_passes_on_what_the_next_one_reads(
    spark: SparkSession, path: str, base: Any
) -> None:
    table = HistoryTable(
        columns=tuple(COLUMNS),
        key=("id",),
        tracked=("name",),
        metadata=("transaction_event",),
        base=base,
    )
    for key_changes, has_boundaries, forward_filled in product(
        KEY_CHANGES, (False, True), ((), ("city",))
    ):
        content = ChangeContent(
            forward_filled=forward_filled,
            has_boundary_events=has_boundaries,
            truncate_scopes=("city",) if has_boundaries else (),
            # a load never takes the incremental path
            has_loads=base is not None and path != "incremental",
            **key_changes,
        )
        try:
            analyse(spark, path, table, content)
        except AnalysisException as error:
            raise AssertionError(f"{content}: {error.getMessage()}") from error


@pytest.mark.parametrize("base", [None, "frozen", "live"])
@pytest.mark.parametrize("path", ["incremental", "replay", "rebuild"])
def test_a_table_whose_columns_are_all_key(spark: SparkSession, path: str, base: Any) -> None:
    table = HistoryTable(columns=("id", "name"), key=("id", "name"), tracked=(), base=base)
    content = ChangeContent(
        has_boundary_events=True,
        has_loads=base is not None and path != "incremental",
        has_key_changes=True,
    )
    analyse(spark, path, table, content)
