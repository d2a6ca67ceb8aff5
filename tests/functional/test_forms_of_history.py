"""Forms of the statement that builds history: Spark finds every column that a step reads.

A step is in the statement only where a table, its log and the path of the run ask for it. So a
column that one step fails to pass on is missed in some forms only. Spark analyses each form and
runs none.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.log_lines import COLUMNS, IMAGE, SCHEMA
from tests.versions_sql import versions_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS = (
    f"{IMAGE}, valid_from timestamp, valid_to timestamp, valid_from_seq string, "
    "valid_to_seq string, is_current boolean, opened_by string, closed_by string, "
    "changed_columns array<string>, unknown_columns array<string>, transaction_id string, "
    "_from_seq string"
)
VIEWS = {
    "people_changes": SCHEMA,
    "people_history": VERSIONS,
    "people_batch": "id int, _from_seq string",
}
HAS_MOVES: tuple[dict[str, bool], ...] = (
    {"has_moves": False},
    {"has_moves": True},
    {"has_moves": True, "has_incomplete_key_changes": True},
)


@pytest.mark.parametrize("kind", ["frozen", "live"])
def test_keys_with_a_base_are_replayed_over_prior_versions(spark: SparkSession, kind: str) -> None:
    for name, columns in VIEWS.items():
        local_rows(spark, [], columns).createOrReplaceTempView(name)
    for moves, has_ends, carried in product(HAS_MOVES, (False, True), ([], ["city"])):
        form: dict[str, Any] = {
            "affected_keys": "select * from people_batch",
            "seeds": "select * from people_history",
            "replays": True,
            "base": {"kind": kind},
            "has_ends": has_ends,
            "scopes": ["city"] if has_ends else [],
            "carried": carried,
            **moves,
        }
        sql = versions_sql("people_changes", COLUMNS, ["id"], **form)
        try:
            spark.sql(f"{sql} select * from versions")
        except AnalysisException as error:
            raise AssertionError(f"{form}: {error.getMessage()}") from error
