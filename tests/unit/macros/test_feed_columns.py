"""Which columns of a raw table are the feed's own, and which are data."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_afterimage.dbt_spark.macro_api.settings import tool_columns
from dbt_afterimage.settings import parse_settings
from tests.change_feed_staging import settings_of, staging_sql

HAND_WRITTEN = {
    "sequence": {"version": "number"},
    "operation": "`change`",
    "operations": {"i": "I", "u": "U"},
    "ignore_columns": ["version", "internal_*"],
}
WITH_ROWS = {**HAND_WRITTEN, "before": "rows", "operations": {"u": "U", "b": "B"}}


@pytest.mark.parametrize(
    ("given", "own", "data"),
    [
        # words that `before` takes for no column are columns like any other
        ({"preset": "sql_server_cdc"}, ["__$operation"], ["rows", "none", "id"]),
        (WITH_ROWS, ["change", "internal_id"], ["rows", "none", "id"]),
        ({**HAND_WRITTEN, "before": "none"}, ["version", "CHANGE"], ["rows", "none", "id"]),
        ({**HAND_WRITTEN, "before": "`Old`"}, ["old", "version"], ["rows", "older", "id"]),
        ({**HAND_WRITTEN, "before": "old_*"}, ["old_id", "OLD_x"], ["rows", "older", "id"]),
    ],
)
def test_columns_of_a_feed(given: dict[str, Any], own: list[str], data: list[str]) -> None:
    meta = {"afterimage": {"system": "change_feed", "key": ["id"], **given}}
    entry = {"source_name": "raw", "name": "people", "config": {"meta": meta}}
    assert tool_columns(None, parse_settings(entry), [*own, *data]) == own


def test_a_declared_column_that_the_table_lacks_is_warned_of() -> None:
    settings = settings_of("debezium_flat", {"key": ["id"]}, {"ID": "int", "nmae": "string"})
    kinds = ["id", "name", "__op", "__lsn", "__source_ts_ms", "__txId"]
    with pytest.warns(UserWarning, match=r"shop\.feed: the declared column nmae .* Fix: ") as found:
        staging_sql(settings, dict.fromkeys(kinds, "string"))
    assert len(found) == 1
