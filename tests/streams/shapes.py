"""The shapes of random streams: what the tables that they are in have and do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tests.oracle.history import TableOptions
from tests.oracle.streams import OPTIONS


@dataclass(frozen=True)
class Shape:
    """What the streams of a table have in common.

    events: what happens to the whole table after an epoch: epoch -> "truncate", "truncate some"
        (the rows whose `a` is 1) or "load".
    has_late: whether some changes of the first two batches come with the third.
    has_late_events: whether truncates and loads come a batch after the changes around them.
    hides: whether updates leave columns out that they do not change, or their before image.
    hides_at_first: whether changes of the first batch leave out a column, inserts too.
    lobs: columns that updates leave out unless they set them to a value, and before images always.
    sends_lobs_of_moves: whether key changes have them all the same. Where neither image has a
        column, late changes are never replayed.
    gains, drops: columns that the source gains, or loses, after the first batch.
    ignores: columns that make no version.
    tracks: the only columns that make versions; none for all.
    keep_deleted: whether the current table keeps deleted keys.
    loses: whether some changes are missing from the log, as after a purge.
    moves: whether rows change their keys.
    good_clocks: whether times never run back: only then newer changes take the
        incremental path, and
        late ones are read without what came before them.
    cuts_transactions: whether a transaction may be in two batches.
    reads_loads_late: whether base tables are read some time after each load, as most are: a live
        one then shows later changes, a frozen one later inserts.
    begins_midway: whether rows exist that no load and no earlier change has named.
    """

    name: str
    base: Literal["frozen", "live"] | None = None
    events: tuple[tuple[int, str], ...] = ()
    has_late: bool = True
    has_late_events: bool = False
    hides: bool = False
    hides_at_first: bool = False
    lobs: tuple[str, ...] = ()
    sends_lobs_of_moves: bool = False
    gains: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    with_transaction_ids: bool = True
    before_images: bool = True
    ignores: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()
    keep_deleted: bool = False
    loses: bool = False
    moves: bool = True
    good_clocks: bool = False
    cuts_transactions: bool = False
    reads_loads_late: bool = False
    begins_midway: bool = False

    @property
    def options(self) -> TableOptions:
        """The settings as the oracle takes them."""
        tracked = [
            column for column in self.tracks or OPTIONS.tracked if column not in self.ignores
        ]
        return replace(
            OPTIONS, tracked=tracked, before_images=self.before_images, base_kind=self.base
        )

    @property
    def has_incomplete_key_changes(self) -> bool:
        """Whether key changes leave columns out of both images."""
        left_out = (*self.drops, *self.gains, *(() if self.sends_lobs_of_moves else self.lobs))
        return self.moves and (self.hides or bool(left_out))

    @property
    def partly_known(self) -> list[str]:
        """Columns that some changes leave out, in the order of the table."""
        left_out = (*self.lobs, *self.gains, *self.drops)
        return [
            column
            for column in OPTIONS.columns
            if column not in OPTIONS.key
            and (self.hides or self.hides_at_first or column in left_out)
        ]


def _shape(base: Literal["frozen", "live"] | None, features: str) -> Shape:
    """A shape with late changes, a truncate, key changes unless it is `still`, and features."""
    words = features.split()
    truncate = "truncate some" if "scoped" in words else "truncate"
    return Shape(
        "_".join([base or "plain", *words]),
        base=base,
        events=((1, "load"), (3, truncate)) if "loads" in words else ((3, truncate),),
        has_late_events="late_events" in words,
        lobs=("c",) if "lobs" in words else (),
        gains=("c",) if "columns" in words else (),
        drops=("b",) if "columns" in words else (),
        sends_lobs_of_moves="sent" in words,
        with_transaction_ids="no_ids" not in words,
        moves="still" not in words,
        ignores=("b",) if "ignore" in words else (),
        tracks=("a",) if "track" in words else (),
        keep_deleted="kept" in words,
        good_clocks="bad_clocks" not in words,
        cuts_transactions="cut" in words,
        reads_loads_late=base is not None,
    )


MIXED = (
    _shape(None, "still columns late_events bad_clocks no_ids"),
    _shape(None, "loads kept lobs sent cut scoped"),
    _shape(None, "ignore kept lobs columns late_events bad_clocks cut no_ids scoped"),
    _shape(None, "ignore loads"),
    _shape(None, "track lobs sent late_events cut no_ids"),
    _shape(None, "still track loads kept columns bad_clocks scoped"),
    _shape("frozen", "kept late_events bad_clocks cut"),
    _shape("frozen", "still loads lobs columns no_ids scoped"),
    _shape("frozen", "ignore lobs sent bad_clocks scoped"),
    _shape("frozen", "ignore loads kept columns late_events no_ids scoped"),
    _shape("frozen", "still track kept lobs columns late_events bad_clocks no_ids"),
    _shape("frozen", "track loads cut scoped"),
    _shape("live", "lobs late_events bad_clocks"),
    _shape("live", "loads kept columns cut no_ids scoped"),
    _shape("live", "ignore kept late_events bad_clocks cut scoped"),
    _shape("live", "still ignore loads lobs columns bad_clocks cut scoped"),
    _shape("live", "track columns no_ids scoped"),
    _shape("live", "track loads kept lobs sent late_events cut no_ids scoped"),
)
"""What tables have, in as few shapes as hold each combination of three: the kind of the base table,
`track` or `ignore`, loads, `keep_deleted`, LOBs, columns gained and lost. And each combination of
one of those with one of the others: tests/unit/test_stream_shapes.py."""

SHAPES = (
    Shape("in_order", has_late=False),
    Shape("on_time", has_late=False, good_clocks=True, cuts_transactions=True),
    Shape("late", cuts_transactions=True),
    Shape("late_and_plain", events=((0, "truncate"),), moves=False, good_clocks=True),
    Shape("truncates", events=((1, "truncate"), (3, "truncate"))),
    Shape(
        "truncates_in_order",
        events=((0, "truncate"), (2, "truncate")),
        has_late=False,
        good_clocks=True,
    ),
    Shape("frozen", base="frozen", events=((2, "truncate"),), has_late=False, good_clocks=True),
    Shape("frozen_late", base="frozen", with_transaction_ids=False),
    Shape("live", base="live", has_late=False, good_clocks=True),
    Shape("live_late", base="live", events=((3, "truncate"),), cuts_transactions=True),
    Shape("live_late_clocks", base="live", events=((3, "truncate"),), good_clocks=True),
    Shape("reloads", events=((1, "load"), (3, "load")), with_transaction_ids=False),
    Shape("live_reloads", base="live", events=((2, "load"),), has_late=False),
    Shape("unknown", events=((2, "truncate"),), hides=True),
    Shape("unknown_in_order", has_late=False, hides=True, good_clocks=True),
    Shape("unknown_ignored", events=((1, "truncate"), (3, "load")), hides=True, ignores=("b", "c")),
    Shape("ignored", events=((1, "truncate"),), ignores=("c",)),
    Shape("lossy", events=((3, "load"),), loses=True, hides=True),
    Shape("scoped", events=((0, "truncate some"), (2, "truncate some"))),
    Shape(
        "scoped_ignored",
        events=((0, "truncate some"), (2, "truncate some")),
        ignores=("a",),
        good_clocks=True,
    ),
    Shape("no_before_images", events=((2, "truncate"),), before_images=False),
    Shape("no_before_images_in_order", has_late=False, before_images=False, good_clocks=True),
    Shape("frozen_unknown", base="frozen", hides=True, events=((3, "truncate"),), good_clocks=True),
    Shape("live_unknown", base="live", hides=True, events=((3, "truncate"),), good_clocks=True),
    # a base that has lost rows, whose deletes do not say what they were, at a later load too
    Shape(
        "live_unknown_reloads",
        base="live",
        hides=True,
        events=((1, "load"),),
        good_clocks=True,
        reads_loads_late=True,
    ),
    Shape("frozen_no_before_images", base="frozen", before_images=False, ignores=("b",)),
    *MIXED,
    # later changes fill in what a version did not know, and all that are late know everything
    Shape("unknown_at_first", hides_at_first=True, good_clocks=True),
    # loads that are applied to the open versions alone
    Shape(
        "reloads_in_order",
        events=((1, "load"), (2, "truncate"), (3, "load")),
        has_late=False,
        good_clocks=True,
    ),
    Shape(
        "reloads_in_order_unknown",
        events=((1, "load"), (3, "load")),
        has_late=False,
        good_clocks=True,
        hides=True,
        ignores=("b",),
    ),
    # rows that swap keys may never have been named before
    Shape("midway", begins_midway=True, events=((3, "truncate"),), cuts_transactions=True),
    Shape("midway_in_order", begins_midway=True, has_late=False, good_clocks=True),
    Shape("midway_unknown", begins_midway=True, hides=True, events=((3, "truncate"),)),
)

FEW = (
    "truncates_in_order",
    "unknown_at_first",
    "late_and_plain",
    "unknown_ignored",
    "no_before_images",
    "plain_still_track_loads_kept_columns_bad_clocks_scoped",
    "frozen_ignore_lobs_sent_bad_clocks_scoped",
    "live_track_loads_kept_lobs_sent_late_events_cut_no_ids_scoped",
)
"""Shapes of the small suite: one of each kind. dbt takes half a minute for each."""

IN_EACH_RUN = ("live_track_loads_kept_lobs_sent_late_events_cut_no_ids_scoped",)
"""Those of `FEW` that dbt builds in `make test`, the others nightly."""

LARGE_SUITE = (
    "unknown",
    "unknown_in_order",
    "frozen_unknown",
    "live_unknown",
    "live_unknown_reloads",
    "midway_unknown",
    *(shape.name for shape in MIXED),
)
"""Shapes that the small suite leaves out, except for those of `FEW`."""
