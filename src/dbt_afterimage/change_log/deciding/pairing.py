"""The before-image self-join: pairs every update with its before image, by change_seq.

The vendor documents the join for change tables: an update and its before image share change_seq.
Here it is one shuffle by change_seq and one sort. Duplicates, pairs, key changes and what the log
holds already are decided by windows over them, so that the wide rows move once.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_afterimage.change_log.contract import data_columns
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.log_rows.columns import column_named
from dbt_afterimage.spark.identifiers import quoted

# What becomes of a record. `pending`: an update or before image whose partner has not come yet;
# `merged`: a before image that is part of its update.
ACCEPTED = "accepted"
REJECTED = "rejected"
DUPLICATE = "duplicate"
PENDING = "pending"
MERGED = "merged"

_ROW_CHANGES = ("I", "U", "B", "D")

# Columns that are gone in the end.
_CLASS = f"{PREFIX}class"
_PAIRING_KEY = f"{PREFIX}place"
_IS_RECORDED = f"{PREFIX}is_recorded"
_IS_CANDIDATE = f"{PREFIX}is_candidate"
_IMAGES = f"{PREFIX}images"
_UPDATES = f"{PREFIX}updates"
_KEYLESS_UPDATES = f"{PREFIX}keyless_updates"
_OWN_KEY = f"{PREFIX}own_key"
_PARTNER = f"{PREFIX}partner"
_VALUES = f"{PREFIX}values"

_ADDED_COLUMNS = ("outcome", "before", "before_known_columns", "before_record_hash")
"""Columns that pairing adds to the staged rows."""


def pair(
    staged: DataFrame,
    recorded: DataFrame | None,
    key: list[str],
    *,
    before_images: bool = True,
    optional: Collection[str] = (),
    hashed_after: str | None = None,
    keeps_unread: bool = True,
) -> DataFrame:
    """Decide what becomes of each raw change record and merge before images into their updates.

    Args:
        staged: rows of a staging model (change-event contract) in any order, without `L` and `N`.
            Where `partner_may_follow` is false, an update or before image never waits: its partner
            is among these rows, or there is none.
        recorded: rows of the change log that may hold the same records, or None.
        key: key columns. Empty: records are paired by change_seq alone.
        before_images: whether the source stores them; if not, no update waits for one, and a
            before image is rejected.
        optional: names of the optional columns of the system; all others are data.
        hashed_after: rows of ``recorded`` up to this time of recording are compared by their
            identity alone: their hashes are of an earlier form. None = there are none.
        keeps_unread: whether merged and duplicate records keep their values. They only count, and
            without values they cost half.

    Returns:
        The staged rows without `raw_record`, plus `outcome` (see the constants),
        `reject_reason`, and for updates `before` (struct of all data columns),
        `before_known_columns` and `before_record_hash`, NULL where there is no before image.

    Raises:
        ReservedColumnError: a data column has a name that the change log needs for itself.
    """
    names = [name for name in staged.columns if name != "raw_record"]
    data = data_columns(names, optional)
    rows = _packed(_classed(staged, key), names, data, key)
    if recorded is not None:
        lost = _lost_columns(recorded, data)
        rows = rows.unionByName(
            _identities(recorded, key, lost, hashed_after), allowMissingColumns=True
        )
    # Records without a position are rejected; spreading them by content keeps them from one task.
    place = F.coalesce("change_seq", F.col("record_hash").cast("string"))
    rows = rows.withColumn(_PAIRING_KEY, place).repartition(_PAIRING_KEY)
    rows = _deduplicate(rows, key)
    rows = _collect_partners(rows, key, before_images)
    rows = _decide(rows, bool(key), before_images, may_follow="partner_may_follow" in names)
    if not keeps_unread:
        is_read = ~F.col("outcome").isin(MERGED, DUPLICATE)
        rows = rows.withColumn(_VALUES, F.when(is_read, F.col(_VALUES)))
    return _unpacked(rows, names, data)


def with_null_key_first(reason: Column, is_keyed: Column, key: list[str]) -> Column:
    """`null_key`, the first of all reasons, where a record lacks its key; else ``reason``."""
    is_null = F.lit(False)
    for column in key:
        is_null = is_null | column_named(column).isNull()
    return F.when(is_keyed & is_null, F.lit("null_key")).otherwise(reason)


def _classed(staged: DataFrame, key: list[str]) -> DataFrame:
    """The class is the operation, or X for a record that is rejected and takes part in nothing."""
    is_keyed = F.coalesce(F.col("change_oper").isin(*_ROW_CHANGES), F.lit(False))
    reason = with_null_key_first(F.col("reject_reason"), is_keyed, key)
    return staged.withColumn("reject_reason", reason).withColumns(
        {
            _CLASS: F.when(F.col("reject_reason").isNull(), F.col("change_oper")).otherwise("X"),
            _IS_RECORDED: F.lit(False),
        }
    )


def _packed(rows: DataFrame, names: list[str], data: list[str], key: list[str]) -> DataFrame:
    """The data columns as one, `_VALUES`, besides the key, which is all that pairing reads.

    Otherwise the code that Spark generates and Java compiles for each step of pairing grows with
    the number of columns.
    """
    # Spark ignores case in column names
    keys, of_data = {name.lower() for name in key}, set(data)
    others = [name for name in names if name not in of_data or name.lower() in keys]
    return rows.selectExpr(
        *map(quoted, others),
        _CLASS,
        _IS_RECORDED,
        f"struct({', '.join(map(quoted, data))}) as {_VALUES}",
    )


def _unpacked(rows: DataFrame, names: list[str], data: list[str]) -> DataFrame:
    """The columns with these names, in their order, and what pairing has added."""
    of_data = set(data)
    return rows.selectExpr(
        *(
            f"{_VALUES}.{quoted(name)} as {quoted(name)}" if name in of_data else quoted(name)
            for name in names
        ),
        *_ADDED_COLUMNS,
    )


def _data_of_log(recorded: DataFrame) -> list[str]:
    before = recorded.schema["before"].dataType
    return before.names if isinstance(before, StructType) else []


def _lost_columns(recorded: DataFrame, present: Collection[str]) -> list[str]:
    there = {name.lower() for name in present}
    return [name for name in _data_of_log(recorded) if name.lower() not in there]


def comparable_hash(
    recorded: DataFrame, present: Collection[str], hashed_after: str | None
) -> Column:
    """The hash of a row of the log; NULL if the same raw record has another one by now.

    Args:
        present: columns that staging yields. A record that had a value in another data column
            cannot have the content any more that it was recorded with.
        hashed_after: hashes of rows recorded up to this time are of an earlier form.
    """
    lost = [column_named(column) for column in _lost_columns(recorded, present)]
    return _hash_unless_lost(F.col("record_hash"), [_is_hashed_before(hashed_after), *lost])


def _is_hashed_before(hashed_after: str | None) -> Column:
    if hashed_after is None:
        return F.lit(None)
    return F.when(F.col("recorded_at") <= F.lit(hashed_after).cast("timestamp"), True)


def _identities(
    recorded: DataFrame, key: list[str], lost: list[str], hashed_after: str | None
) -> DataFrame:
    """One row per raw record that the log holds: a change, and the before image merged into it.

    Hashes are those of `comparable_hash`.
    """
    is_earlier = _is_hashed_before(hashed_after)
    own = F.struct(
        *[column_named(column).alias(column) for column in key],
        F.col("change_oper").alias(_CLASS),
        _hash_unless_lost(
            F.col("record_hash"), [is_earlier, *[column_named(column) for column in lost]]
        ),
    )
    image = F.struct(
        *[F.col("before")[column].alias(column) for column in key],
        F.lit("B").alias(_CLASS),
        _hash_unless_lost(
            F.col("before_record_hash"),
            [is_earlier, *[F.col("before")[column] for column in lost]],
        ),
    )
    both = F.when(F.col("before_record_hash").isNull(), F.array(own)).otherwise(F.array(own, image))
    return recorded.select("change_seq", F.inline(both)).withColumn(_IS_RECORDED, F.lit(True))


def _hash_unless_lost(record_hash: Column, lost: list[Column]) -> Column:
    for value in lost:
        record_hash = F.when(value.isNull(), record_hash)
    return record_hash.alias("record_hash")


def _deduplicate(rows: DataFrame, key: list[str]) -> DataFrame:
    """Of one identity (change_seq, key, operation) the log's copy stays, or the first copy."""
    identity = Window.partitionBy(
        _PAIRING_KEY, *[column_named(column) for column in key], _CLASS
    ).orderBy(F.col(_IS_RECORDED).desc(), "record_hash")
    is_rejected = F.col(_CLASS) == "X"
    is_first = F.row_number().over(identity) == 1
    first_hash = F.first("record_hash").over(identity)
    same_as_first = first_hash.isNull() | (first_hash == F.col("record_hash"))
    # In the order by content, copies are neighbours.
    same_as_previous = F.lag("record_hash").over(identity) == F.col("record_hash")
    return rows.withColumn(
        "outcome",
        F.when(is_first, F.when(is_rejected, REJECTED))
        .when(same_as_first | same_as_previous, DUPLICATE)
        .otherwise(REJECTED),
    ).withColumns(
        {
            _IS_CANDIDATE: ~F.col(_IS_RECORDED) & F.col("outcome").isNull(),
            "reject_reason": F.coalesce(
                "reject_reason",
                F.when(F.col("outcome") == REJECTED, F.lit("conflicting_duplicate")),
            ),
        }
    )


def _collect_partners(rows: DataFrame, key: list[str], before_images: bool) -> DataFrame:
    """Adds the before images and the updates of a change_seq to each of its rows.

    Both arrays hold one element in all but damaged input. The frame is the whole partition, so
    Spark builds them once per change_seq.
    """
    same_place = Window.partitionBy(_PAIRING_KEY)
    own_key = (
        F.struct(*[column_named(column) for column in key]) if key else F.lit(None).cast("string")
    )
    image = F.struct(
        F.col(_VALUES).alias("image"),
        own_key.alias("key"),
        F.col("known_columns").alias("known_columns"),
        F.col("record_hash").alias("record_hash"),
    )
    is_image = F.lit(before_images) & F.col(_IS_CANDIDATE) & (F.col(_CLASS) == "B")
    is_update = F.col(_IS_CANDIDATE) & (F.col(_CLASS) == "U")
    update = F.struct(own_key.alias("key"))
    is_keyless_update = (F.col("change_oper") == "U") & (F.col("reject_reason") == "null_key")
    keyless_updates = F.count_if(is_keyless_update & (F.col("outcome") == REJECTED))
    return rows.withColumns(
        {
            _OWN_KEY: own_key,
            _IMAGES: F.collect_list(F.when(is_image, image)).over(same_place),
            _UPDATES: F.collect_list(F.when(is_update, update)).over(same_place),
            _KEYLESS_UPDATES: keyless_updates.over(same_place),
        }
    ).filter(~F.col(_IS_RECORDED))


def _decide(rows: DataFrame, has_key: bool, before_images: bool, *, may_follow: bool) -> DataFrame:
    images, updates, own_key = F.col(_IMAGES), F.col(_UPDATES), F.col(_OWN_KEY)
    one_pair = (F.size(images) == 1) & (F.size(updates) == 1)
    # What remains of a change_seq once equal keys are paired: exactly one of each is a key change.
    if has_key:
        own_images = F.filter(images, lambda b: b["key"].eqNullSafe(own_key))
        has_own_update = F.exists(updates, lambda u: u["key"].eqNullSafe(own_key))
        free_images = F.filter(
            images, lambda b: ~F.exists(updates, lambda u: u["key"].eqNullSafe(b["key"]))
        )
        free_updates = F.filter(
            updates, lambda u: ~F.exists(images, lambda b: b["key"].eqNullSafe(u["key"]))
        )
    else:
        own_images = F.slice(images, 1, 0)
        has_own_update = F.lit(False)
        free_images, free_updates = images, updates
    is_key_change = (F.size(free_images) == 1) & (F.size(free_updates) == 1)
    is_ambiguous = (F.size(free_images) > 0) & (F.size(free_updates) > 0)

    partner = (
        F.when(one_pair, images[0])
        .when(F.size(images) == 0, None)
        .when(F.size(own_images) > 0, own_images[0])
        .when(is_key_change, free_images[0])
    )
    is_update = F.col(_IS_CANDIDATE) & (F.col(_CLASS) == "U")
    is_image = F.col(_IS_CANDIDATE) & (F.col(_CLASS) == "B")
    # Where the source stores no before images, nothing waits for one and none has a place.
    may_wait = F.lit(False)
    if before_images:
        may_wait = F.lit(True)
        if may_follow:
            may_wait = F.coalesce("partner_may_follow", may_wait)
    update_alone = F.when(may_wait, PENDING).otherwise(ACCEPTED)
    image_alone = F.when(may_wait, PENDING).otherwise(REJECTED)
    of_image = F.lit(REJECTED)
    # an update to a NULL key is rejected: its before image would wait in vain for a partner
    is_of_keyless = F.size(free_images) <= F.col(_KEYLESS_UPDATES)
    if before_images:
        of_image = (
            F.when(one_pair, MERGED)
            .when(has_own_update | is_key_change, MERGED)
            .when(is_ambiguous | is_of_keyless, REJECTED)
            .otherwise(image_alone)
        )
    outcome = (
        F.when(F.col("outcome").isNotNull(), F.col("outcome"))
        .when(
            is_update,
            F.when(F.col(_PARTNER).isNotNull(), ACCEPTED)
            .when(F.size(images) == 0, update_alone)
            .when(is_ambiguous, REJECTED)
            .otherwise(update_alone),
        )
        .when(is_image, of_image)
        .otherwise(ACCEPTED)
    )
    is_orphan = is_image & ~is_ambiguous
    reason = F.when(is_orphan, F.lit("orphan_before_image")).otherwise(F.lit("ambiguous_pair"))
    rows = rows.withColumn(_PARTNER, F.when(is_update, partner))
    return rows.withColumn("outcome", outcome).withColumns(
        {
            "reject_reason": F.coalesce(
                "reject_reason", F.when(F.col("outcome") == REJECTED, reason)
            ),
            "before": F.col(_PARTNER)["image"],
            "before_known_columns": F.col(_PARTNER)["known_columns"],
            "before_record_hash": F.col(_PARTNER)["record_hash"],
        }
    )


def is_pending_too_long(horizon: str) -> Column:
    """True for a pending record that the look-back has passed: no partner is expected any more."""
    return (F.col("outcome") == PENDING) & (F.col("change_seq") <= horizon)
