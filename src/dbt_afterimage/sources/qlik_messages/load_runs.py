"""Full loads: which REFRESH messages belong together, and whether all of them are there.

A REFRESH message has no position and names no load. What is known: a partition keeps the order of
its messages, and the changes of a table come after its full load. So REFRESH messages of a table
in one partition are one run until a change comes; the load that they belong to lies behind the
greatest change_seq before the run, and not behind the change that ends it. Runs of several
partitions whose intervals have a place in common belong to one load.

Runs are few, some per load and partition: plain Python computes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbt_afterimage.sequence import QlikChangeSequence

# Beyond every position: the end of a run that only the user has declared ended.
OPEN_END = "~"

Table = tuple[str | None, str]
"""Names of schema and table; a schema is not known in every form."""
Range = tuple[str, int, int, int]
"""Topic, partition, and offsets of the first and the last message."""


@dataclass(frozen=True)
class Run:
    """REFRESH messages of one table in one partition, with no newer change between them.

    Attributes:
        rows: how many messages it has.
        after: the greatest change_seq of the table before it in the partition; "" for none.
        ended_by: the change_seq of the next change in the partition; None when none has come yet.
        loaded_at: when its last message was produced, ISO text in UTC.
    """

    table: Table
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    rows: int
    after: str
    ended_by: str | None
    loaded_at: str | None

    @property
    def range(self) -> Range:
        """Where its messages are."""
        return self.topic, self.partition, self.first_offset, self.last_offset

    @property
    def is_redelivered(self) -> bool:
        """An older change follows: the producer went back, and sent messages a second time."""
        return self.ended_by is not None and self.ended_by <= self.after


@dataclass(frozen=True)
class FullLoad:
    """A full load of a table.

    Attributes:
        load_id: its name: topic, partition and offset of one of its messages.
        after: the greatest change_seq before it; "" for none.
        until: it lies before this change_seq, or at it.
        is_complete: a change has come in each partition that has some of them.
        loaded_at: when its last message was produced, ISO text in UTC.
    """

    table: Table
    load_id: str
    after: str
    until: str
    runs: tuple[Run, ...]
    is_complete: bool
    loaded_at: str | None

    @property
    def position(self) -> str:
        """Its change_seq: just behind the greatest one before it."""
        sequence = QlikChangeSequence("0 seconds")
        return sequence.after(self.after) if self.after else sequence.first


@dataclass(frozen=True)
class Recorded:
    """Recorded loads of a table.

    Attributes:
        until: up to which change_seq they are done; "" for none.
        position: the greatest of their positions; "" for none.
        ranges: where the messages are that were recorded, or rejected because they came too late.
    """

    until: str = ""
    position: str = ""
    ranges: Sequence[Range] = ()

    def has(self, load: FullLoad) -> bool:
        """This load, or a later one, was recorded."""
        # by its position as well: a load that the user said to be whole had no end yet
        return load.until <= self.until or load.position <= self.position

    def rest_of(self, run: Run) -> Run | None:
        """The messages of a run behind those that were recorded; None where there are none."""
        ends = [found[3] for found in self.ranges if _overlap(found, run.range)]
        first = max([run.first_offset, *[end + 1 for end in ends]])
        return replace(run, first_offset=first) if first <= run.last_offset else None


def new_and_late(
    loads: Sequence[FullLoad], recorded: Recorded
) -> tuple[list[FullLoad], list[FullLoad]]:
    """Loads that are not recorded; and those that are, with the messages that they are without.

    Args:
        loads: of one table, in their order.
    """
    new: list[FullLoad] = []
    late: list[FullLoad] = []
    of_later: set[Run] = set()
    for load in reversed(loads):
        if not recorded.has(load):
            new.insert(0, load)
        else:
            # a message that belongs to a later load too is not too late for that one
            own = [recorded.rest_of(run) for run in load.runs if run not in of_later]
            rest = tuple(run for run in own if run is not None)
            if rest:
                late.append(replace(load, runs=rest))
        of_later.update(load.runs)
    return new, late


def as_recorded(
    loads: Sequence[FullLoad], recorded: Mapping[str, Sequence[Range]]
) -> list[FullLoad]:
    """Loads that are put together again, by the names that they were recorded by: these are whole.

    A partition that was heard of too late may come first now, and would give its load another name.

    Args:
        loads: of one table, in their order.
        recorded: the names, in the order of their loads, and where the rows of each are.
    """
    own = {load.load_id for load in loads}
    others = {name: ranges for name, ranges in recorded.items() if name not in own}
    found = []
    for load in loads:
        name: str | None = load.load_id
        if name not in recorded:
            places = [run.range for run in load.runs]
            name = next(
                (
                    other
                    for other, ranges in others.items()
                    if any(_overlap(one, place) for one in ranges for place in places)
                ),
                None,
            )
            others.pop(name or "", None)
        found.append(load if name is None else replace(load, load_id=name, is_complete=True))
    return found


def _overlap(one: Range, other: Range) -> bool:
    return one[:2] == other[:2] and one[2] <= other[3] and other[2] <= one[3]


def full_loads(runs: Sequence[Run]) -> list[FullLoad]:
    """The loads of one table that its runs make, in their order.

    A run may belong to several loads: between them its partition had no change.

    Args:
        runs: of one table, none of them redelivered.
    """
    ends = {run: run.ended_by or OPEN_END for run in runs}
    # the loads are as few as the runs allow: each run begins before the first end behind it
    places = sorted({min(end for end in ends.values() if end > run.after) for run in runs})
    loads = []
    for place in places:
        members = [run for run in runs if run.after < place <= ends[run]]
        after = max(run.after for run in members)
        # a run that begins last is in no earlier load, so that no two loads have one name
        latest = [run for run in members if run.after == after]
        first = min(latest, key=lambda run: (run.topic, run.partition, run.first_offset))
        times = [run.loaded_at for run in members if run.loaded_at is not None]
        loads.append(
            FullLoad(
                table=first.table,
                load_id=f"{first.topic}-{first.partition}-{first.first_offset}",
                after=after,
                until=place,
                runs=tuple(members),
                is_complete=all(run.ended_by is not None for run in members),
                loaded_at=max(times, default=None),
            )
        )
    return loads
