"""The rows that a run deletes from the history, inserts into it and replaces in it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.history.names import IS_PRIOR, IS_UPDATED_IN_PLACE, VERSION_ID, own
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.mart_batch import ACTION


def changed_versions(versions: DataFrame) -> DataFrame:
    """Of an incremental batch: new versions, and open ones that were closed or updated in place.

    Invariant: a prior version that stays as it was is not written.
    """
    return versions.where(
        f"not {IS_PRIOR} or valid_to_seq is not null or {IS_UPDATED_IN_PLACE}"
    ).selectExpr("*", f"if({IS_PRIOR}, 'update', 'insert') as {ACTION}")


def differing_versions(versions: DataFrame, stored: DataFrame, version_id: str) -> DataFrame:
    """Of a replay or a rebuild: the difference between the versions and the stored ones.

    Args:
        versions: all versions of the affected keys, from where they were replayed.
        stored: the rows of the history that they replace.
        version_id: name of the surrogate key in `stored`.
    """
    values = [
        name for name in versions.columns if name not in (VERSION_ID, IS_PRIOR, IS_UPDATED_IN_PLACE)
    ]
    before, after, stored_id = own("stored_row"), own("version_row"), own("stored_id")
    packed = ", ".join(f"{quoted(name)} as {quoted(name)}" for name in values)
    new = versions.selectExpr(VERSION_ID, f"struct({packed}) as {after}")
    old = stored.selectExpr(f"{quoted(version_id)} as {stored_id}", f"struct({packed}) as {before}")
    return (
        new.join(old, F.expr(f"{VERSION_ID} = {stored_id}"), "full_outer")
        .where(f"{VERSION_ID} is null or {stored_id} is null or not ({after} <=> {before})")
        .selectExpr(
            f"coalesce({VERSION_ID}, {stored_id}) as {VERSION_ID}",
            *(f"{after}.{quoted(name)} as {quoted(name)}" for name in values),
            f"case when {VERSION_ID} is null then 'delete' when {stored_id} is null then 'insert'"
            f" else 'update' end as {ACTION}",
        )
    )
