"""Finds rows added to the raw tables since the last run, and the late ones among them.

The tables' versions show which rows were added. The staging view's own statement over these rows
alone gives their positions; what is read at these positions is the staging view again. Where the
versions do not show it, or Spark refuses the statement, the positions in the staging view that the
log lacks are read: slower, and never less.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.reading.raw_version import Version, is_same_staging
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.stored_view import readable_name, statement_of, temporary_name
from dbt_afterimage.storage.temp_view import temporary_view

logger = AdapterLogger("afterimage")

_MAX_POSITIONS_IN_FILTER = 100
"""How many positions a condition names; more of them are read as a range."""
_NO_RELATION = (
    r"[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`"
    r"|--[^\n]*|/\*(?:/\*.*?\*/|.)*?\*/"
)
"""Literals, names in backticks, and comments, as Spark reads them."""


@dataclass(frozen=True)
class NewRows:
    """Rows that were added to the raw tables since earlier runs.

    Attributes:
        is_late: condition on change_seq: at a position where records were added that runs had
            passed.
        first_arrival: the least mark of arrival of all added rows; None where there are none.
        is_marked: each of them has a mark, and staging is what it was.
    """

    is_late: Column
    first_arrival: str | None = None
    is_marked: bool = False


def new_rows(
    session: SparkSession,
    read: Mapping[str, Version] | None,
    now: Mapping[str, Version],
    log: DataFrame,
    floor: str,
) -> NewRows:
    """The added rows, and which of them lie at or before ``floor``.

    Args:
        read: the versions that earlier runs have read; None where that is not known.
        now: the versions that there are; the first one is that of the staging view.
        floor: behind this position everything is read.
    """
    tables = [name for name, version in now.items() if version[0] not in ("view", "absent")]
    views = [name for name, version in now.items() if version[0] == "view"]
    is_same = read is not None and is_same_staging(read, now)
    if read is not None and all(read.get(name) == now[name] for name in tables):
        return NewRows(F.lit(False), is_marked=is_same)
    added = {
        name: added_rows(session, name, None if read is None else read.get(name), now[name])
        for name in tables
    }
    known = {name: rows for name, rows in added.items() if rows is not None}
    if views and len(known) == len(added):
        try:
            with ExitStack() as temporary:
                names = {
                    name: temporary.enter_context(temporary_view(rows))
                    for name, rows in known.items()
                }
                for name in reversed(views):
                    staged = session.sql(_with_names(statement_of(session, name), names))
                    found = temporary.enter_context(temporary_view(staged))
                    names |= {name: found, temporary_name(name): found}
                return _found_in(staged, floor, is_same)
        except AnalysisException as error:
            logger.debug(f"{views[0]} cannot be read over new rows alone: {error}")
    is_passed = F.col("change_seq") <= floor
    # only changes are ever in the log
    staged = session.table(readable_name(session, next(iter(now))))
    changes = _changes(staged).filter("change_oper is distinct from 'N'")
    return NewRows(_positions(changes.filter(is_passed), log.filter(is_passed)))


def _changes(staged: DataFrame) -> DataFrame:
    return staged.filter(~F.col("change_oper").eqNullSafe("L"))


def _found_in(staged: DataFrame, floor: str, is_same: bool) -> NewRows:
    seq, arrival = F.col("change_seq"), F.col("arrival")
    changes = _changes(staged)
    late, unmarked, first = changes.agg(
        F.count_if(seq <= floor), F.count_if(arrival.isNull()), F.min(arrival)
    ).collect()[0]
    is_late = _positions(changes.filter(seq <= floor), None) if late else F.lit(False)
    return NewRows(is_late, first, is_same and not unmarked)


def _positions(late: DataFrame, log: DataFrame | None) -> Column:
    seq = F.col("change_seq")
    found = late.select(seq).distinct()
    few = found.limit(_MAX_POSITIONS_IN_FILTER + 1).collect()
    if few and log is not None:
        found = found.join(log.select(seq), "change_seq", "left_anti")
        few = found.limit(_MAX_POSITIONS_IN_FILTER + 1).collect()
    if len(few) <= _MAX_POSITIONS_IN_FILTER:
        return seq.isin([row[0] for row in few]) if few else F.lit(False)
    first, last = found.agg(F.min(seq), F.max(seq)).collect()[0]
    return seq.between(first, last)


def _with_names(statement: str, names: Mapping[str, str]) -> str:
    """A statement that reads other relations, and calls them as it did.

    A relation in another spelling is read whole. A name where no relation stands makes a statement
    that Spark refuses, unless it is part of a literal: literals stay as they are.
    """

    def replaced(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0]
        # columns may be qualified; where something else follows, it may be an alias
        alias = "" if found["end"] is None else f" as {name.rpartition('.')[2]}"
        return names[name] + alias

    # the longest first: a name may be the end of another one
    spelled = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    place = rf"(?<![\w.`])(?P<name>{spelled})(?![\w.`])(?P<end>(?=\s*(?:(?i:where)\b|\)|$)))?"
    return re.sub(f"{place}|{_NO_RELATION}", replaced, statement, flags=re.DOTALL)


def added_rows(
    session: SparkSession, name: str, read: Version | None, now: Version
) -> DataFrame | None:
    """The rows added to a table since a version; None where the table does not show them.

    Args:
        read: the version that earlier runs have read; None where that is not known.
    """
    rows = session.table(name)
    if read == now:
        return rows.limit(0)
    if read is None:
        return None
    if read[0] == "absent" or (read[0] == "iceberg" and read[1] == "none"):
        return rows
    if read[:-1] != now[:-1]:
        # a table of another format or with another identity has taken its place
        return None
    return format_named(now[0]).added_rows(session, name, read[-1], now[-1])
