"""What was added to the raw tables since a run, and which of it lies at positions it had passed.

The tables' versions show which rows were added. The staging view's own statement over these rows
alone gives their positions; what is read at these positions is the staging view again. So a wrong
guess here can only make a run read more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.raw_version import Version
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.temp_view import temporary_view

_FEW = 100
"""How many positions a condition names; more of them are read as a range."""


@dataclass(frozen=True)
class _Added:
    """Rows of a table that a run has not read.

    Attributes:
        rows: with all columns of the table.
        is_exact: no row is among them that an earlier run has read.
    """

    rows: DataFrame
    is_exact: bool = True


@dataclass(frozen=True)
class NewRows:
    """What was added to the raw tables since earlier runs.

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
) -> NewRows | None:
    """What was added, and which of it lies at or before ``floor``.

    Args:
        session: the live Spark session.
        read: the versions that earlier runs have read; None where that is not known.
        now: the versions that there are; the first one is that of the staging view.
        log: the change log.
        floor: behind this position everything is read.

    Returns:
        None where the statement of a view cannot be had.
    """
    tables = [name for name, version in now.items() if version[0] not in ("view", "absent")]
    views = [name for name, version in now.items() if version[0] == "view"]
    is_same_staging = read is not None and all(read.get(name) == now[name] for name in views)
    if read is not None and all(read.get(name) == now[name] for name in tables):
        return NewRows(F.lit(False), is_marked=is_same_staging)
    added = {
        name: _added(session, name, None if read is None else read.get(name), now[name])
        for name in tables
    }
    try:
        with ExitStack() as temporary:
            names = {
                name: temporary.enter_context(temporary_view(of.rows)) for name, of in added.items()
            }
            staged: DataFrame | None = None
            for name in reversed(views):
                statement = _statement(session, name)
                if statement is None:
                    return None
                staged = session.sql(_with_names(statement, names))
                names[name] = temporary.enter_context(temporary_view(staged))
            if staged is None:
                return None
            is_exact = all(of.is_exact for of in added.values())
            return _found_in(staged, floor, None if is_exact else log, is_same_staging)
    except AnalysisException:
        return None


def _found_in(
    staged: DataFrame, floor: str, log: DataFrame | None, is_same_staging: bool
) -> NewRows:
    seq, arrival = F.col("change_seq"), F.col("arrival")
    is_change = F.col("change_oper").isNull() | (F.col("change_oper") != "L")
    changes = staged.filter(is_change)
    late, unmarked, first = changes.agg(
        F.count_if(seq <= floor), F.count_if(arrival.isNull()), F.min(arrival)
    ).collect()[0]
    passed = None if log is None else log.filter(seq <= floor)
    is_late = _positions(changes.filter(seq <= floor), passed) if late else F.lit(False)
    return NewRows(is_late, first, is_same_staging and not unmarked)


def _positions(late: DataFrame, log: DataFrame | None) -> Column:
    seq = F.col("change_seq")
    found = late.select(seq).distinct()
    few = found.limit(_FEW + 1).collect()
    if few and log is not None:
        found = found.join(log.select(seq), "change_seq", "left_anti")
        few = found.limit(_FEW + 1).collect()
    if len(few) <= _FEW:
        return seq.isin([row[0] for row in few]) if few else F.lit(False)
    first, last = found.agg(F.min(seq), F.max(seq)).collect()[0]
    return seq.between(first, last)


def _statement(session: SparkSession, view: str) -> str | None:
    """The text of a staging view, which follows its properties."""
    (row,) = session.sql(f"show create table {view}").collect()
    _, _, text = row[0].partition("'afterimage.definition'")
    found = re.search(r"\nAS\s(.*)", text, re.DOTALL)
    return None if found is None else found[1]


def _with_names(statement: str, names: Mapping[str, str]) -> str:
    """A statement that reads other relations."""

    def replaced(text: str, name: str) -> str:
        spelled = re.escape(name)
        return re.sub(rf"(?<![\w.`]){spelled}(?![\w.`])", names[name], text)

    # the longest first: a name may be the end of another one
    return reduce(replaced, sorted(names, key=len, reverse=True), statement)


def _added(session: SparkSession, name: str, read: Version | None, now: Version) -> _Added:
    """What was added since a version; all rows where that is not known."""
    rows = session.table(name)
    if read == now:
        return _Added(rows.limit(0))
    if read is None:
        return _Added(rows, is_exact=False)
    if read[0] == "absent" or (read[0] == "iceberg" and read[1] == "none"):
        return _Added(rows)
    if read[:-1] != now[:-1]:
        # a table of another format or with another identity has taken its place
        return _Added(rows, is_exact=False)
    found = format_named(now[0]).added_rows(session, name, read[-1], now[-1])
    return _Added(rows, is_exact=False) if found is None else _Added(found)
