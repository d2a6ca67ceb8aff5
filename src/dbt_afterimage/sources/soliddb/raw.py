"""The landed SYS_LOG in one normal form, whatever types its columns were landed with."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, MapType, StringType

from dbt_afterimage.sources.soliddb.record_ids import (
    ADDRESS_DIGITS,
    COMMIT,
    EMPTY,
    HAS_DATA,
    RECORD_IDS,
)

_FIRST_DIGIT = "0"
# what sorts behind a text with any number of blanks after it
_AFTER_BLANK = "!"
_COLUMNS = ("recid", "trxid", "stmttrxid", "relid", "flags", "logaddr", "data", "landed_at")


class RawLogError(ValueError):
    """The landed log cannot be read as SYS_LOG; the text is meant for the user."""


@dataclass(frozen=True)
class Found:
    """Values that the records of a run share.

    Attributes:
        records: how many there are.
        last_commit: the greatest address of a COMMIT, None where there is none.
    """

    records: int
    last_commit: str | None


def normal_log(log: DataFrame, table: str, is_decoded: bool, last: str | None = None) -> DataFrame:
    """The records of SYS_LOG, without those that hold nothing.

    Dropped are heartbeats and the notice of a shutdown: they have no RECID, or 0, and no data.

    Args:
        log: the landed table. LOGADDR and DATA are binary or hex text; where columns are decoded
            already, DATA is a map of column name to text, or a JSON object as text.
        last: leave out records up to this address.

    Returns:
        record_id, transaction_id, statement_id, raw_relation_id, flags, log_address (capital hex
        text), data (binary; a map where decoded), landed_at, record_hash.

    Raises:
        RawLogError: a column is missing, or DATA has a type that cannot be read.
    """
    names = {name.lower() for name in log.columns}
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise RawLogError(
            f"Source table {table} lacks the column `{'`, `'.join(missing)}`. It must have the "
            "columns of SYS_LOG and `landed_at`, the time at which a record was landed: the log "
            "itself holds no time. Fix: land them, or put a view over the table."
        )
    if last is not None:
        log = log.filter(is_newer(log, last))
    is_nothing = (F.coalesce("record_id", F.lit(EMPTY)) == EMPTY) & (
        F.coalesce("flags", F.lit(0)).bitwiseAND(F.lit(HAS_DATA)) == 0
    )
    return log.select(
        _integer("recid").alias("record_id"),
        _integer("trxid").alias("transaction_id"),
        _integer("stmttrxid").alias("statement_id"),
        _integer("relid").alias("raw_relation_id"),
        _integer("flags").alias("flags"),
        address(log, "logaddr").alias("log_address"),
        _data(log, table, is_decoded).alias("data"),
        F.col("landed_at").cast("timestamp").alias("landed_at"),
        _record_hash(log),
    ).filter(~is_nothing)


def address(frame: DataFrame, column: str) -> Column:
    """A log address as capital hex text, which compares as the bytes do."""
    if isinstance(_type(frame, column), BinaryType):
        return F.hex(column)
    return F.upper(F.trim(F.col(column).cast("string")))


def is_newer(log: DataFrame, last: str) -> Column:
    """True for landed records after an address, and for those without one.

    The column as it is landed is compared too, so that the table format can skip files: with binary
    and with capital hex text. Small letters come after capital ones, so that a text is never less
    than its address, unless it begins with a blank; of small letters no file is skipped.
    """
    place, no_address = F.col("logaddr"), F.col("logaddr").isNull()
    if isinstance(_type(log, "logaddr"), BinaryType):
        return (place > F.lit(bytes.fromhex(last))) | no_address
    may_be_newer = (place > last) | (place < _FIRST_DIGIT) | no_address
    # not `| no_address` again: Spark would take it out of both, and leave nothing to skip files by
    return may_be_newer & F.coalesce(address(log, "logaddr") > last, F.lit(True))


def is_at(log: DataFrame, place: str) -> Column:
    """True for landed records at an address; files are skipped as by `is_newer`."""
    given = F.col("logaddr")
    if isinstance(_type(log, "logaddr"), BinaryType):
        return given == F.lit(bytes.fromhex(place))
    may_be_at = given.between(place, place.lower() + _AFTER_BLANK) | (given < _FIRST_DIGIT)
    return may_be_at & (address(log, "logaddr") == place)


def check_records(records: DataFrame, table: str, last: str | None) -> Found:
    """Look at the new records once, and stop where they cannot be read.

    Args:
        records: of `normal_log`, with addresses after ``last`` or without a usable one.
        last: the address up to which earlier runs have read, None before the first.

    Raises:
        RawLogError: a record id that is not documented, an address that is none, or addresses of
            two lengths: these do not compare.
    """
    is_known = F.col("record_id").isin(*[key for key in RECORD_IDS if key != EMPTY])
    unknown = F.when(
        ~F.coalesce(is_known, F.lit(False)), F.struct("log_address", "record_id", "flags")
    )
    allowed = "|".join(f"[0-9A-F]{{{digits}}}" for digits in ADDRESS_DIGITS)
    well_formed = F.coalesce(F.col("log_address").rlike(f"^({allowed})$"), F.lit(False))
    malformed = F.when(~well_formed, F.struct("record_id", "log_address"))
    row = records.agg(
        F.count(F.lit(1)).alias("records"),
        F.min(unknown).alias("unknown"),
        F.min(malformed).alias("malformed"),
        F.count(malformed).alias("malformed_records"),
        F.min(F.length("log_address")).alias("shortest"),
        F.max(F.length("log_address")).alias("longest"),
        F.max(F.when(F.col("record_id") == COMMIT, F.col("log_address"))).alias("last_commit"),
    ).first()
    assert row is not None  # an aggregate without keys has one row
    if row["unknown"] is not None:
        raise RawLogError(
            f"Source table {table}: RECID {row['unknown']['record_id']} at LOGADDR "
            f"{row['unknown']['log_address']} is not a documented record id; it may be a change "
            f"that would be lost. Known: {_listed_ids()}. Nothing was written. Fix: find out what "
            "the record is; where it is not a change of a row, leave it out by a view over the "
            "table."
        )
    if row["malformed"] is not None:
        raise RawLogError(
            f"Source table {table}: {row['malformed_records']:,} records have no usable LOGADDR; "
            f"one of them, with RECID {row['malformed']['record_id']}, has "
            f"{row['malformed']['log_address']!r}. Allowed: 20 or 28 bytes, as binary or as hex "
            "text. Nothing was written. Fix: land LOGADDR whole."
        )
    digits = {length for length in (row["shortest"], row["longest"]) if length is not None}
    if last is not None and digits:
        digits.add(len(last))
    if len(digits) > 1:
        lengths = " and ".join(str(length // 2) for length in sorted(digits))
        raise RawLogError(
            f"Source table {table}: log addresses of {lengths} bytes; addresses of two lengths do "
            "not compare, so that the order of changes is unknown. Nothing was written. Fix: land "
            "the log of the upgraded server in a source of its own."
        )
    return Found(row["records"], row["last_commit"])


def _listed_ids() -> str:
    return ", ".join(f"{number} {what}" for number, what in RECORD_IDS.items())


def _type(frame: DataFrame, column: str) -> DataType:
    (found,) = [field for field in frame.schema.fields if field.name.lower() == column]
    return found.dataType


def _integer(column: str) -> Column:
    return F.col(column).try_cast("int")


def _data(log: DataFrame, table: str, is_decoded: bool) -> Column:
    kind = _type(log, "data")
    is_text = isinstance(kind, StringType)
    if is_decoded:
        if is_text:
            return F.from_json("data", "map<string,string>")
        if isinstance(kind, MapType):
            return F.col("data").cast("map<string,string>")
        allowed = "a map of column name to text, or a JSON object as text, since `framing` is "
        allowed += "'decoded'"
    else:
        if is_text:
            return F.expr("try_to_binary(trim(data), 'hex')")
        if isinstance(kind, BinaryType):
            return F.col("data")
        allowed = "binary or hex text; where columns are decoded already, set `framing: decoded`"
    raise RawLogError(
        f"Source table {table}: the column `data` is of type {kind}. Allowed: {allowed}. "
        "Fix: land it so, or put a view over the table."
    )


def _record_hash(log: DataFrame) -> Column:
    """A hash of the record's content, by which it is known when it is landed again.

    xxhash64 skips NULLs, so that every value goes in with its column's name.
    """
    names = [name for name in _COLUMNS if name != "landed_at"]

    def value(name: str) -> Column:
        kind = _type(log, name)
        if isinstance(kind, BinaryType):
            return F.hex(name)
        if isinstance(kind, MapType):
            return F.to_json(name)
        return F.col(name).cast("string")

    named = [(F.when(F.col(name).isNotNull(), F.lit(name)), value(name)) for name in names]
    return F.xxhash64(*[part for pair in named for part in pair]).alias("record_hash")
