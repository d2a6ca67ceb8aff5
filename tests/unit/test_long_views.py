"""Which metastores are checked for whether they can hold a long view."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_afterimage.dbt_spark import long_views

DERBY = "jdbc:derby:;databaseName=/data/metastore;create=true"


def session(catalog: str, **hadoop: str) -> Any:
    """A session with this catalog and these settings of Hadoop, a dot being two underscores."""
    given = {name.replace("__", "."): value for name, value in hadoop.items()}
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: given))
    return SimpleNamespace(
        conf=SimpleNamespace(get=lambda name, default: catalog), sparkContext=context
    )


@pytest.mark.parametrize(
    ("given", "url"),
    [
        (session("hive", javax__jdo__option__ConnectionURL=DERBY), DERBY),
        (session("hive"), "jdbc:derby:;databaseName=metastore_db;create=true"),
        (session("in-memory", javax__jdo__option__ConnectionURL=DERBY), None),
        (session("hive", hive__metastore__uris="thrift://metastore:9083"), None),
        (session("hive", javax__jdo__option__ConnectionURL="jdbc:postgresql://db/hive"), None),
    ],
)
def test_only_an_embedded_derby_is_altered(
    monkeypatch: pytest.MonkeyPatch, given: Any, url: str | None
) -> None:
    altered: list[str] = []
    monkeypatch.setattr(long_views, "_widen", lambda session, url: altered.append(url))
    long_views.make_room_for_view(given, "x" * 30_001)
    assert altered == ([url] if url else [])


def test_a_short_view_queries_nothing() -> None:
    long_views.make_room_for_view(cast(Any, None), "x" * 30_000)
