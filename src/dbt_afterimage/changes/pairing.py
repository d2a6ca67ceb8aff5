"""The before-image self-join: pairs every update with its before image, by change_seq.

The vendor documents the join for change tables: an update and its before image share change_seq.
Here it is one shuffle by change_seq and one sort. Duplicates, pairs, key changes and what the log
holds already are decided by windows over them, so that the wide rows move once.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.changes.contract import data_columns

# What becomes of a record. `waiting`: an update or before image whose partner has not come yet;
# `folded`: a before image that went into its update.
ACCEPTED = "accepted"
REJECTED = "rejected"
DUPLICATE = "duplicate"
WAITING = "waiting"
FOLDED = "folded"

_ROW_CHANGES = ("I", "U", "B", "D")


def pair(
    staged: DataFrame,
    recorded: DataFrame | None,
    key: list[str],
    *,
    before_images: bool = True,
) -> DataFrame:
    """Decide what becomes of each raw change record and fold before images into their updates.

    Args:
        staged: rows of a staging model (change-event contract) in any order, without `L` and `N`.
        recorded: rows of the change log that may hold the same records, or None.
        key: key columns. Empty: records are paired by change_seq alone.
        before_images: whether the source stores them; if not, no update waits for one.

    Returns:
        The staged rows without `raw_record` and `arrival`, plus `outcome` (see the constants),
        `reject_reason`, and for updates `before` (struct of all data columns), `before_known_columns`
        and `before_record_hash`, NULL where there is no before image.
    """
    data = data_columns(staged.columns)
    rows = _classed(staged.drop("raw_record", "arrival"), key).withColumn("is_recorded", F.lit(False))
    if recorded is not None:
        rows = rows.unionByName(_identities(recorded, key), allowMissingColumns=True)
    # Records without a position are rejected; spreading them by content keeps them from one task.
    place = F.coalesce("change_seq", F.col("record_hash").cast("string"))
    rows = rows.withColumn("place", place).repartition("place")
    rows = _deduplicate(rows, key)
    rows = _collect_partners(rows, data, key)
    return _decide(rows, bool(key), before_images).drop(
        "place", "is_recorded", "class", "is_candidate", "images_before", "updates", "own_key"
    )


def _classed(staged: DataFrame, key: list[str]) -> DataFrame:
    """`class` is the operation, or X for a record that is rejected and takes part in nothing."""
    reason = F.col("reject_reason")
    if key:
        is_null = F.lit(False)
        for column in key:
            is_null = is_null | F.col(column).isNull()
        no_key = F.col("change_oper").isin(*_ROW_CHANGES) & is_null
        reason = F.coalesce(reason, F.when(no_key, F.lit("null_key")))
    return staged.withColumn("reject_reason", reason).withColumn(
        "class", F.when(F.col("reject_reason").isNull(), F.col("change_oper")).otherwise("X")
    )


def _identities(recorded: DataFrame, key: list[str]) -> DataFrame:
    """One row per raw record that the log holds: a change, and the before image folded into it."""
    own = F.struct(
        *[F.col(column).alias(column) for column in key],
        F.col("change_oper").alias("class"),
        F.col("record_hash").alias("record_hash"),
    )
    image = F.struct(
        *[F.col("before")[column].alias(column) for column in key],
        F.lit("B").alias("class"),
        F.col("before_record_hash").alias("record_hash"),
    )
    both = F.when(F.col("before_record_hash").isNull(), F.array(own)).otherwise(F.array(own, image))
    return recorded.select("change_seq", F.inline(both)).withColumn("is_recorded", F.lit(True))


def _deduplicate(rows: DataFrame, key: list[str]) -> DataFrame:
    """Per identity (change_seq, key, operation): the log's copy stays, else the first by content."""
    identity = Window.partitionBy("place", *key, "class").orderBy(
        F.col("is_recorded").desc(), "record_hash"
    )
    first = F.first("record_hash").over(identity)
    previous = F.lag("record_hash").over(identity)
    is_first = F.row_number().over(identity) == 1
    same = F.col("record_hash").eqNullSafe(
        # rejected records have no identity beyond their content, and are sorted by it
        F.when(F.col("class") == "X", previous).otherwise(first)
    )
    return (
        rows.withColumn("_first", is_first)
        .withColumn("_same", same)
        .withColumn("is_candidate", ~F.col("is_recorded") & F.col("_first") & (F.col("class") != "X"))
        .withColumn(
            "outcome",
            F.when(F.col("class") == "X", F.when(~F.col("_first") & F.col("_same"), DUPLICATE).otherwise(REJECTED))
            .when(~F.col("_first") & F.col("_same"), DUPLICATE)
            .when(~F.col("_first"), REJECTED),
        )
        .withColumn(
            "reject_reason",
            F.coalesce(
                "reject_reason",
                F.when(F.col("outcome") == REJECTED, F.lit("conflicting_duplicate")),
            ),
        )
        .drop("_first", "_same")
    )


def _collect_partners(rows: DataFrame, data: list[str], key: list[str]) -> DataFrame:
    """Puts the before images and the updates of a change_seq beside each of its rows.

    Both arrays hold one element in all but damaged input. The frame is the whole partition, so
    Spark builds them once per change_seq.
    """
    same_place = Window.partitionBy("place")
    own_key = F.struct(*[F.col(column) for column in key]) if key else F.lit(None).cast("string")
    image = F.struct(
        F.struct(*[F.col(column) for column in data]).alias("image"),
        own_key.alias("key"),
        F.col("known_columns").alias("known_columns"),
        F.col("record_hash").alias("record_hash"),
    )
    is_image = F.col("is_candidate") & (F.col("class") == "B")
    is_update = F.col("is_candidate") & (F.col("class") == "U")
    return (
        rows.withColumn("own_key", own_key)
        .withColumn("images_before", F.collect_list(F.when(is_image, image)).over(same_place))
        .withColumn("updates", F.collect_list(F.when(is_update, F.struct(own_key.alias("key")))).over(same_place))
        .filter(~F.col("is_recorded"))
    )


def _decide(rows: DataFrame, has_key: bool, before_images: bool) -> DataFrame:
    images, updates = F.col("images_before"), F.col("updates")
    one_pair = (F.size(images) == 1) & (F.size(updates) == 1)
    # What remains of a change_seq once equal keys are paired: exactly one of each is a key change.
    if has_key:
        own_images = F.filter(images, lambda b: b["key"].eqNullSafe(F.col("own_key")))
        has_own_update = F.exists(updates, lambda u: u["key"].eqNullSafe(F.col("own_key")))
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
    is_update = F.col("is_candidate") & (F.col("class") == "U")
    is_image = F.col("is_candidate") & (F.col("class") == "B")
    rows = rows.withColumn("partner", F.when(is_update, partner))
    alone = WAITING if before_images else ACCEPTED
    outcome = (
        F.when(F.col("outcome").isNotNull(), F.col("outcome"))
        .when(
            is_update,
            F.when(F.col("partner").isNotNull(), ACCEPTED)
            .when(F.size(images) == 0, alone)
            .when(is_ambiguous, REJECTED)
            .otherwise(alone),
        )
        .when(
            is_image,
            F.when(one_pair, FOLDED)
            .when(F.size(updates) == 0, WAITING)
            .when(has_own_update | is_key_change, FOLDED)
            .when(is_ambiguous, REJECTED)
            .otherwise(WAITING),
        )
        .otherwise(ACCEPTED)
    )
    return (
        rows.withColumn("_decided", outcome)
        .withColumn(
            "reject_reason",
            F.when(
                F.col("outcome").isNull() & (F.col("_decided") == REJECTED), F.lit("ambiguous_pair")
            ).otherwise(F.col("reject_reason")),
        )
        .withColumn("outcome", F.col("_decided"))
        .withColumn("before", F.col("partner.image"))
        .withColumn("before_known_columns", F.col("partner.known_columns"))
        .withColumn("before_record_hash", F.col("partner.record_hash"))
        .drop("_decided", "partner")
    )


def is_waiting_too_long(horizon: str) -> Column:
    """True for a waiting record that the look-back has passed: no partner is expected any more."""
    return (F.col("outcome") == WAITING) & (F.col("change_seq") <= horizon)
