"""Publication of a run's tables once its models and tests have passed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.run_record import SUCCEEDED
from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.spark.session import current

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_afterimage.storage.published import Publications

logger = AdapterLogger("afterimage")

RUN_NAME = "AFTERIMAGE_RUN"
"""Environment variable: the run that the command is a part of."""
_SHOWN = 10
"""How many failures a message lists."""
_EXAMPLES, _EXAMPLE_LENGTH = 3, 300


@macro_method()
def begin_publication(adapter: Any, publication: dict[str, Any]) -> None:
    """Move the tags that a killed command was about to move.

    Args:
        publication: what the macro `_publication` says.

    Raises:
        DbtRuntimeError: AFTERIMAGE_RUN is not a name.
    """
    _run_name()
    with dbt_errors(ConcurrentRunError):
        _publications(publication).finish()


@macro_method()
def end_publication(
    adapter: Any,
    publication: dict[str, Any],
    nodes: Mapping[str, Any],
    results: Collection[Any],
    selected: Iterable[str],
) -> None:
    """Publish what a command has written, or hold it back and say why.

    Args:
        selected: ids of the nodes that it was to run.
    """
    from dbt_afterimage.storage.compaction import compact_written
    from dbt_afterimage.storage.progress_cache import end_command
    from dbt_afterimage.storage.publish import seen_version

    run, tables, session = _run_name(), publication["tables"], current()
    passed = {each.node.unique_id for each in results if each.status in SUCCEEDED}
    not_passed = [each for each in results if each.status not in SUCCEEDED]
    if not results or not session.catalog.tableExists(publication["progress"]):
        return
    with dbt_errors(ConcurrentRunError):
        # before the versions are looked up, or the tags would be behind compaction
        end_command(session)
        compact_written(session)
        state = _publications(publication)
        built = {}
        for each in results:
            table = tables.get(each.node.unique_id)
            if table and each.status in SUCCEEDED:
                # a mart of ours without news has just looked its version up
                seen = seen_version(table) if each.message == "OK, nothing new" else None
                built[table] = seen or state.version(table)
        news = {
            table: version
            for table, version in built.items()
            if version and version != state.published_version(table)
        }
        # with --fail-fast there are nodes without a result
        failed = {
            node
            for node in ({*selected} - passed if not_passed else ())
            if node in nodes and nodes[node]["config"]["materialized"] != "ephemeral"
        }
        if run:
            state.record(run, news, failed, passed)
            if news:
                logger.info(f"{_count(news)} of the run {run} wait for `afterimage publish`.")
            return
        pending = {table: v for table, v in state.pending("").items() if table in tables.values()}
        state.record("", {}, (), passed)
        reasons = [_reason(session, each) for each in not_passed[:_SHOWN] if _has_failed(each)]
        found, others = _others(state, nodes, tables, pending, {**pending, **news}, built)
        reasons += _earlier(state, nodes, "", failed) if pending else []
        reasons += others
        if not_passed or reasons:
            state.record("", news, failed if news or pending else (), ())
            if news or pending:
                logger.warning(_held_back(state, publication, {**pending, **news}, reasons))
            return
        _publish(state, {**found, **news}, "")


@macro_method()
def close_run(
    adapter: Any, publication: dict[str, Any], nodes: Mapping[str, Any], accept: bool
) -> None:
    """Publish the tables of a run that several commands have written, and what was held back.

    Args:
        accept: although nodes have failed; outside of a named run, all tables of the project.

    Raises:
        DbtRuntimeError: nodes of the run have failed and not passed since.
    """
    run, tables = _run_name(), publication["tables"]
    with dbt_errors(ConcurrentRunError):
        state = _publications(publication)
        state.finish()
        held = {**state.pending(""), **state.pending(run)}
        pending = {table: version for table, version in held.items() if table in tables.values()}
        if accept:
            chosen = pending if run else tables.values()
            versions = {table: state.version(table) for table in chosen}
            _publish(state, {table: v for table, v in versions.items() if v}, run)
            return
        found, reasons = _others(state, nodes, tables, pending, pending, {})
        runs = {run, ""} if state.pending("") else {run}
        reasons += [reason for each in sorted(runs) for reason in _earlier(state, nodes, each, ())]
        if reasons:
            state.hold_back(run)
            raise DbtRuntimeError(_held_back(state, publication, pending, reasons))
        _publish(state, found, run)


def _run_name() -> str:
    name = os.environ.get(RUN_NAME, "")
    if name and not re.fullmatch(r"[\w.:+-]{1,100}", name):
        raise DbtRuntimeError(
            f"The environment variable {RUN_NAME} is {name!r}. Allowed: up to 100 letters, digits "
            "and _ . : + -. Nothing was written. Fix: give the run such a name."
        )
    return name


def _publications(publication: Mapping[str, Any]) -> Publications:
    from dbt_afterimage.storage.published import Publications

    return Publications(current(), publication["progress"], publication["schema"])


def _publish(state: Publications, tables: Mapping[str, str], run: str) -> None:
    state.publish(tables, run)
    if tables:
        logger.info(f"Published {_count(tables)}.")


def _others(
    state: Publications,
    nodes: Mapping[str, Any],
    tables: Mapping[str, str],
    pending: Mapping[str, str],
    news: Mapping[str, str],
    built: Collection[str],
) -> tuple[dict[str, str], list[str]]:
    """The tables that wait and that the command has not built, and why some cannot be published.

    A command that was killed has recorded nothing. So what waits must be as it was left, and what
    the new rows were made from must be published, or be published with them.

    Args:
        pending: with the versions that a command has recorded.
        news: the tables that are to be published, `pending` among them.
    """
    known = {table: state.published_version(table) for table in _inputs(nodes, tables, news)}
    found, reasons = {}, []
    for table, at in {**known, **pending}.items():
        version = None if table in built else state.version(table)
        if version and state.has_rows_of(table, version, at):
            found[table] = version
        elif version:
            reasons.append(f"  {table} has rows of a command that did not end: build it, too")
    return {table: version for table, version in found.items() if table in pending}, reasons


def _inputs(nodes: Mapping[str, Any], tables: Mapping[str, str], news: Collection[str]) -> set[str]:
    """The published tables that some tables read, themselves or by views and change logs."""
    found, seen = set(), set()
    to_visit = [node for node, table in tables.items() if table in news]
    while to_visit:
        for parent in nodes[to_visit.pop()]["depends_on"].get("nodes", ()):
            if parent in tables:
                found.add(tables[parent])
            elif parent in nodes and parent not in seen:
                seen.add(parent)
                to_visit.append(parent)
    return found


def _has_failed(result: Any) -> bool:
    return str(result.status) != "skipped"


def _reason(session: SparkSession, result: Any) -> str:
    """A node that failed, with rows that its test has found."""
    node = result.node
    of = getattr(node, "attached_node", None)
    of = f" of {of.rpartition('.')[2]}" if of else ""
    lines = [f"  {node.resource_type} {node.name}{of}: {result.status}"]
    if node.resource_type == "test" and result.status == "fail" and node.compiled_code:
        try:
            query = f"select * from (\n{node.compiled_code}\n) limit {_EXAMPLES}"
            rows = [row.asDict() for row in session.sql(query).collect()]
        except Exception:
            # they only help: the test itself has said what it found
            rows = []
        texts = [json.dumps(row, default=str, ensure_ascii=False) for row in rows]
        lines += [f"    {text[:_EXAMPLE_LENGTH]}" for text in texts]
    return "\n".join(lines)


def _earlier(
    state: Publications, nodes: Mapping[str, Any], run: str, now: Collection[str]
) -> list[str]:
    """Nodes of the project that failed in earlier commands of a run and have not passed since."""
    return [
        f"  {node} failed, or was skipped, on {at}, and has not passed since"
        for node, at in state.failed(run).items()
        if node in nodes and node not in now
    ]


def _held_back(
    state: Publications,
    publication: Mapping[str, Any],
    tables: Collection[str],
    reasons: list[str],
) -> str:
    more = len(reasons) - _SHOWN
    shown = reasons[:_SHOWN] + ([f"  and {more} more"] if more > 0 else [])
    since = f"the state of {state.published_at}" if state.published_at else "nothing yet"
    return "\n".join(
        [
            f"Not published: readers of {publication['schema']} still see {since}.",
            *shown,
            f"{_count(tables)} wait: {', '.join(sorted(tables)[:_SHOWN])}"
            f"{' ...' if len(tables) > _SHOWN else ''}. Query them there to see their new rows. "
            "Fix: correct the rows or the test and run again: once all of this passes, all of them "
            "are published. To publish them as they are: afterimage publish --accept.",
        ]
    )


def _count(tables: Collection[str]) -> str:
    return f"{len(tables)} table{'' if len(tables) == 1 else 's'}"
