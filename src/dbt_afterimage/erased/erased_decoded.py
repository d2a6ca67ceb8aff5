"""Erased data does not come back when a decoded log reads its raw table again."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StructType

from dbt_afterimage.erased.erasures import Erasure
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.storage.local_relation import local_rows

_TEXTS = ("raw_value", "undecoded_data", "reject_detail")
"""Columns of decoded logs with a record, or a part of it, that could not be decoded."""

_HASH = f"{PREFIX}erased_hash"
_IS_WHOLE = f"{PREFIX}is_whole_record_erased"
_NAMES = f"{PREFIX}erased_names"
_UP_TO = f"{PREFIX}erased_up_to"


def without_erased_data(
    session: SparkSession, rows: DataFrame, erasures: Sequence[Erasure]
) -> DataFrame:
    """Decoded records without those that were erased, and without values that were."""
    if not erasures:
        return rows
    listed = [
        (
            record_hash,
            each.columns is None,
            [name.lower() for name in each.columns or ()],
            each.up_to,
        )
        for each in erasures
        for record_hash in each.record_hashes
    ]
    given = f"{_HASH} bigint, {_IS_WHOLE} boolean, {_NAMES} array<string>, {_UP_TO} string"
    erased = (
        local_rows(session, listed, given)
        .groupBy(_HASH)
        .agg(
            F.bool_or(_IS_WHOLE).alias(_IS_WHOLE),
            F.flatten(F.collect_set(_NAMES)).alias(_NAMES),
            F.max(_UP_TO).alias(_UP_TO),
        )
    )
    same = (record_identity(rows.columns) == F.col(_HASH)) & is_of_erasure(
        rows.columns, F.col(_UP_TO)
    )
    found = rows.join(F.broadcast(erased), same, "left")
    kept = found.filter(~F.coalesce(F.col(_IS_WHOLE), F.lit(False)))
    nulled = {
        name: F.when(F.col(_HASH).isNull(), F.col(name)).otherwise(value).alias(name)
        for name, value in erased_values(rows.schema, F.col(_NAMES)).items()
    }
    return kept.select(*[nulled.get(name, F.col(name)) for name in rows.columns])


def record_identity(columns: Sequence[str]) -> Column:
    """The hash of a decoded record; that of a message does not by itself distinguish tables."""
    if "table_name" not in columns:
        return F.col("record_hash")
    return F.xxhash64("record_hash", "table_schema", "table_name")


def is_of_erasure(columns: Sequence[str], up_to: Column) -> Column:
    """True for a record that has the hash of an erased one, unless it is of a later full load.

    A row of a later load may have the same content. All other records hold their own position.
    """
    if "load_id" not in columns:
        return F.lit(True)
    return F.col("load_id").isNull() | (F.col("change_seq") <= up_to)


def erased_values(schema: StructType, names: Column) -> dict[str, Column]:
    """The columns of a decoded log that hold values, without those of some columns.

    Args:
        names: the erased columns in small letters, an array.
    """
    erased: dict[str, Column] = {}
    for name in _maps(schema):
        erased[name] = F.transform_values(
            F.col(name),
            lambda column, value: F.when(~F.array_contains(names, F.lower(column)), value),
        )
    for name in _TEXTS:
        if name in schema.names:
            erased[name] = F.lit(None).cast("string")
    return erased


def has_values(schema: StructType, columns: Sequence[str]) -> Column:
    """True for a decoded record that has a value of some columns, or a text that may have one."""
    names = [name.lower() for name in columns]
    found = F.lit(False)
    for name in _maps(schema):
        values = F.map_filter(
            F.col(name), lambda column, value: F.lower(column).isin(*names) & value.isNotNull()
        )
        found = found | F.coalesce(F.size(values) > 0, F.lit(False))
    for name in _TEXTS:
        if name in schema.names:
            found = found | F.col(name).isNotNull()
    return found


def _maps(schema: StructType) -> list[str]:
    return [field.name for field in schema.fields if isinstance(field.dataType, MapType)]
