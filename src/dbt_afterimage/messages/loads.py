"""Full loads: which REFRESH messages belong together, and whether all of them are there.

A REFRESH message has no position and names no load. What is known: a partition keeps the order of
its messages, and the changes of a table come after its full load. So REFRESH messages of a table
in one partition are one run until a change comes; the load that they belong to lies behind the
greatest change_seq before the run, and not behind the change that ends it. Runs of several
partitions whose intervals have a place in common belong to one load.

Runs are few, some per load and partition: they are worked out here, in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_afterimage.positions import QlikPositions

# Beyond every position: where a run ends that nothing has ended, but for the word of the user.
_OPEN_END = "~"

Table = tuple[str | None, str]
"""Names of schema and table; a schema is not known in every form."""
RunName = tuple[str, int, int]
"""Topic, partition, and offset of a run's last message."""


@dataclass(frozen=True)
class Run:
    """REFRESH messages of one table in one partition, with no newer change between them.

    Attributes:
        table: whose messages they are.
        topic: of the partition.
        partition: its number.
        first_offset: of the run's first message.
        last_offset: of its last one.
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
    def name(self) -> RunName:
        """What tells it from other runs, however many messages it had when it was first seen."""
        return self.topic, self.partition, self.last_offset

    @property
    def is_redelivered(self) -> bool:
        """An older change follows: the producer went back, and sent messages a second time."""
        return self.ended_by is not None and self.ended_by <= self.after


@dataclass(frozen=True)
class FullLoad:
    """A full load of a table.

    Attributes:
        table: what is loaded.
        load_id: its name: topic, partition and offset of one of its messages.
        after: the greatest change_seq before it; "" for none.
        until: it lies before this change_seq, or at it.
        runs: its messages.
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
        where = QlikPositions("0 seconds")
        return where.after(self.after) if self.after else where.first


def full_loads(runs: Sequence[Run]) -> list[FullLoad]:
    """The loads of one table that its runs make, in their order.

    A run may belong to several loads: between them its partition had no change.

    Args:
        runs: of one table, none of them redelivered.
    """
    ends = {run: run.ended_by or _OPEN_END for run in runs}
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
