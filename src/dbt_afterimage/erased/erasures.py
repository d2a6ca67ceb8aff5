"""The table `afterimage_erasures`: what `afterimage erase` removed, without the data itself.

One row per key and call. A row is written before anything is removed, so that no run can bring the
data back from raw tables meanwhile, and completed afterwards. The progress table has the number of
rows: where rows are missing, no run goes on.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from threading import Lock
from uuid import uuid4

from dbt_common.invocation import get_invocation_id
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.contradictions import ERASURES, check_erasures
from dbt_afterimage.storage.create import table_options
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import Progress, write_progress
from dbt_afterimage.storage.publish import current_version

_COLUMNS = (
    ("erasure_id", "string", "one call of afterimage erase"),
    ("change_log", "string", "the change log, as afterimage_progress names it"),
    ("key_hash", "string", "SHA-256 of the change log and the key, in hex"),
    ("erased_columns", "array<string>", "columns that were set to NULL; NULL: whole records"),
    ("up_to_change_seq", "string", "records up to this change_seq are erased; later ones are kept"),
    ("decoded_log", "string", "the table of decoded records that the change log is read from"),
    ("record_hashes", "array<bigint>", "hashes of its records of this key"),
    ("erased_by", "string", "login name of the user"),
    ("erased_at", "timestamp", "when the call began, UTC"),
    ("completed_at", "timestamp", "when nothing was left; NULL: the call was killed, repeat it"),
)


@dataclass(frozen=True)
class ErasuresTable:
    """The table of erasures.

    Attributes:
        name: `afterimage_erasures`; it may not exist.
        table_format: `iceberg` or `delta`.
        progress: the progress table of its schema.
    """

    name: str
    table_format: str
    progress: str


@dataclass(frozen=True)
class Erasure:
    """An erasure of one key.

    Attributes:
        change_log: the log's name in `afterimage_progress`.
        key_hash: see `key_hash.key_hash_sql`.
        columns: columns that were set to NULL; None = whole records.
        up_to: change_seq up to which records are erased.
        decoded_log: name of the decoded log upstream, None where there is none.
        record_hashes: identities of its records that are erased.
    """

    change_log: str
    key_hash: str
    columns: tuple[str, ...] | None
    up_to: str
    decoded_log: str | None = None
    record_hashes: tuple[int, ...] = ()


_lock = Lock()
_cached: dict[tuple[str, str], list[Erasure]] = {}
"""dbt command that runs, and name of the table -> all erasures; of the last command only."""


def erasures_of(session: SparkSession, table: ErasuresTable, change_log: str) -> list[Erasure]:
    """The erasures of a change log.

    They are read once per dbt command, for all models. Without the table, that costs one look-up
    in the catalog.

    Raises:
        ContradictionError: rows are missing, so records would come back.
    """
    return [each for each in _all(session, table) if each.change_log == change_log]


def erasures_in_decoded_log(
    session: SparkSession, table: ErasuresTable, decoded_log: str
) -> list[Erasure]:
    """The erasures that removed records of a decoded log; arguments as in `erasures_of`."""
    return [each for each in _all(session, table) if each.decoded_log == decoded_log]


def record_erasures(
    session: SparkSession, table: ErasuresTable, erasures: Sequence[Erasure]
) -> None:
    """Append the erasures of a call, not completed yet; the first call creates the table."""
    listed = ", ".join(f"{name} {kind} comment '{what}'" for name, kind, what in _COLUMNS)
    session.sql(
        f"create table if not exists {table.name} ({listed}) {table_options(table.table_format)} "
        "comment 'One row per erased key and call of afterimage erase'"
    )
    kinds = {name: kind for name, kind, _ in _COLUMNS}
    names = ("change_log", "key_hash", "erased_columns", "up_to_change_seq", "decoded_log")
    given = ", ".join(f"{name} {kinds[name]}" for name in (*names, "record_hashes"))
    rows = local_rows(session, [_values(each) for each in erasures], given).withColumns(
        {
            "erasure_id": F.lit(str(uuid4())),
            "erased_by": F.lit(getpass.getuser()),
            "erased_at": F.current_timestamp(),
            "completed_at": F.lit(None).cast("timestamp"),
        }
    )
    rows.select(*kinds).writeTo(table.name).append()
    _record_rows(session, table)
    with _lock:
        _cached.clear()


def complete_erasures(
    session: SparkSession,
    table: ErasuresTable,
    change_log: str,
    hashes: Sequence[str],
    columns: Sequence[str] | None,
) -> None:
    """Set the time of completion of erasures that have none, as far as a finished one covers them.

    Args:
        hashes: the keys of the finished erasure.
        columns: its columns; None = whole records, which covers all columns.
    """
    is_covered = ""
    if columns is not None:
        listed = ", ".join(text(name) for name in columns)
        is_covered = f" and size(array_except(erased_columns, array({listed}))) = 0"
    session.sql(
        f"update {table.name} set completed_at = current_timestamp() "
        f"where change_log = {text(change_log)} and completed_at is null "
        f"and key_hash in ({', '.join(text(each) for each in hashes)}){is_covered}"
    )
    _record_rows(session, table)


def killed_with(
    session: SparkSession, table: ErasuresTable, change_log: str, hashes: Sequence[str]
) -> set[str]:
    """The other keys of calls that were killed, and that had one of these keys."""
    if not session.catalog.tableExists(table.name):
        return set()
    is_open = (F.col("change_log") == change_log) & F.col("completed_at").isNull()
    found = session.table(table.name).where(is_open).select("erasure_id", "key_hash").collect()
    calls = {row["erasure_id"] for row in found if row["key_hash"] in hashes}
    return {row["key_hash"] for row in found if row["erasure_id"] in calls}.difference(hashes)


def _values(each: Erasure) -> tuple[object, ...]:
    columns = None if each.columns is None else list(each.columns)
    hashes = list(each.record_hashes) if each.decoded_log else None
    return (each.change_log, each.key_hash, columns, each.up_to, each.decoded_log, hashes)


def _record_rows(session: SparkSession, table: ErasuresTable) -> None:
    version = current_version(session, table.name, table.table_format)
    at = datetime.now(timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds")
    rows = json.dumps({"at": at, "rows": session.table(table.name).count()})
    progress = Progress(recorded_at=at, table_version=version)
    write_progress(session, table.progress, ERASURES, progress, batch=rows)


def _all(session: SparkSession, table: ErasuresTable) -> list[Erasure]:
    command = (get_invocation_id(), table.name)
    with _lock:
        if command not in _cached:
            found = session.catalog.tableExists(table.name)
            erasures = _read(session.table(table.name)) if found else []
            check_erasures(session, table.name, table.table_format, table.progress, len(erasures))
            _cached.clear()
            _cached[command] = erasures
        return _cached[command]


def _read(rows: DataFrame) -> list[Erasure]:
    return [
        Erasure(
            row["change_log"],
            row["key_hash"],
            None if row["erased_columns"] is None else tuple(row["erased_columns"]),
            row["up_to_change_seq"],
            row["decoded_log"],
            tuple(row["record_hashes"] or ()),
        )
        for row in rows.collect()
    ]
