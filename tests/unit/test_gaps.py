"""When no gap is searched for; how one is found is tested with Spark, in test_change_log.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_afterimage.change_log.deciding.gaps import check_gap
from dbt_afterimage.sequence import QlikChangeSequence
from dbt_afterimage.storage.progress import Progress
from tests.run_contexts import run_context


@pytest.mark.parametrize(
    "changed",
    [
        {"settings": {"on_gap": "ignore"}},
        {"accept_gap": True},
        # who backfills repairs the gap already
        {"backfill_from": "2026-03-01"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_an_accepted_gap_is_not_searched_for(changed: dict[str, Any]) -> None:
    context = run_context(settings={"on_gap": "fail"})
    tables: Any = None  # not touched
    where = QlikChangeSequence("15 minutes")
    done = Progress("2026-03-02T10:00:00.000000", "2".ljust(35, "0"))
    with pytest.raises(AttributeError):
        check_gap(context, where, tables, tables, done, None, None)
    check_gap(replace(context, **changed), where, tables, tables, done, None, None)
