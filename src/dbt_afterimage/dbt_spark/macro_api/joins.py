"""Tables of temporal joins: their joins, and how far they have read the feeds of their sides."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.spark.session import current

_joins: dict[str, Any] = {}


@macro_method()
def hand_over_join(adapter: Any, model: str, join: Any) -> None:
    """Keep what the macro `temporal_join` joins for the materialization of the same model."""
    _joins[model] = join


@macro_method()
def take_join(adapter: Any, model: str) -> Any:
    """The join of a model; None if it calls no `temporal_join`."""
    return _joins.pop(model, None)


@macro_method(while_parsing={})
def feeds_seen(
    adapter: Any, progress: Any, relation: Any, model: str, version: str | None
) -> dict[str, str]:
    """Up to which `feed_at` a table has applied each feed; empty if it has to be built.

    Args:
        version: its version, of `current_version`.
    """
    from dbt_afterimage.storage.contradictions import is_restored
    from dbt_afterimage.storage.progress import read_progress

    session = current()
    with dbt_errors():
        known = read_progress(session, str(progress), model)
        published = known.table_version
        if is_restored(session, str(relation), table_format(adapter), version, published):
            return {}
    return dict(json.loads(known.raw_version or "{}").get("feeds", {}))


@macro_method(while_parsing=False)
def continues_feeds(adapter: Any, seen: dict[str, str], reached: dict[str, str]) -> bool:
    """Whether all feeds are those that a table has read, and none has begun again since."""
    return seen.keys() == reached.keys() and all(seen[feed] <= reached[feed] for feed in seen)


@macro_method()
def record_feeds(
    adapter: Any, progress: Any, relation: Any, model: str, reached: dict[str, str]
) -> None:
    """Record up to which `feed_at` a table has applied each feed."""
    from dbt_afterimage.storage.formats import format_named
    from dbt_afterimage.storage.progress import Progress, write_progress

    session = current()
    # the time comes first: of two texts, the later one is greater
    at = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    feeds = json.dumps({"at": at, "feeds": reached})
    with dbt_errors():
        version = format_named(table_format(adapter)).version(session, str(relation))
        write_progress(
            session, str(progress), model, Progress(raw_version=feeds, table_version=version)
        )
