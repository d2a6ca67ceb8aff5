"""The body of the model `stg_soliddb__log`: reads SYS_LOG once and decodes what is new in it.

One model for all tables, because one landed table holds the changes of all of them: a model per
table would read and cut the whole log once per table. The staging view of a table then only picks
its rows and casts their values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from dbt_afterimage.change_log.rebuild import check_still_there
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import SourceSettings
from dbt_afterimage.sources.decoded_log import LogBatch, LogRun, start_log
from dbt_afterimage.sources.soliddb.arrow import RESULT_TYPE, batch_decoder, pickle_by_value
from dbt_afterimage.sources.soliddb.catalogue import Catalogue, read_catalogue
from dbt_afterimage.sources.soliddb.ddl_tables import check_names, relation_id, with_tables
from dbt_afterimage.sources.soliddb.framing import framing_of
from dbt_afterimage.sources.soliddb.log_gaps import check_late_records, check_log_gap
from dbt_afterimage.sources.soliddb.raw import Found, check_records, normal_log
from dbt_afterimage.sources.soliddb.record_ids import (
    BEFORE_IMAGE,
    CHANGES_COLUMNS,
    DDL,
    DDL_KINDS,
    ROW_IDS,
    SQL,
)
from dbt_afterimage.sources.soliddb.transactions import in_frames
from dbt_afterimage.sources.soliddb.value_columns import DDL_COLUMNS, SQL_COLUMNS
from dbt_afterimage.sources.soliddb.value_columns import Column as TableColumn
from dbt_afterimage.storage.checkpoint import checkpoint
from dbt_afterimage.storage.progress import greatest

logger = AdapterLogger("afterimage")

# Numbers of layouts that are not a table's; those of tables count from 0.
_DDL_LAYOUT = -1
_SQL_LAYOUT = -2

LOG_COLUMNS = {
    "change_seq": "string",
    "log_address": "string",
    "commit_address": "string",
    "record_id": "int",
    "relation_id": "int",
    "transaction_id": "int",
    "statement_id": "int",
    "transaction_event": "bigint",
    "flags": "int",
    "is_capture_off": "boolean",
    "changed_at": "timestamp",
    "recorded_at": "timestamp",
    "is_ddl": "boolean",
    "image": "map<string,string>",
    "ddl_code": "int",
    "ddl_kind": "string",
    "ddl_name": "string",
    "sql_text": "string",
    "reject_reason": "string",
    "reject_detail": "string",
    "undecoded_data": "string",
    "record_hash": "bigint",
}


def build_log(
    dbt: Any, session: SparkSession, log: DataFrame, tables: DataFrame, columns: DataFrame
) -> LogBatch:
    """The batch that this run adds to the decoded log.

    Args:
        log: the landed SYS_LOG, ``dbt.source(..., "sys_log")``. Name it first: its settings hold.

    Returns:
        A batch for the materialization `staging_log` to write. No row is written here.

    Raises:
        RawLogError: the landed tables cannot be read as a log and its catalogue.
        GapError: the raw table was purged before it was read, and `on_gap` is `fail`.
        RebuildError: `rebuild_changes` is set, and the raw table lacks what was decoded from it.
        UnknownFramingError: the setting `framing` names no function.
    """
    context = RunContext(**dbt.config.get("afterimage"))
    settings = context.settings
    table, is_decoded = settings["source_table"], settings["framing"] == "decoded"
    if not is_decoded:
        framing_of(settings["framing"])
    run = start_log(session, context, F.col("commit_address"))
    last: str | None = run.done.change_seq
    if run.stored is not None and run.is_rebuild:
        raw = normal_log(log, table, is_decoded)
        check_still_there(context.model, run.stored, raw, ["log_address"])
        last = None

    records = checkpoint(in_frames(normal_log(log, table, is_decoded, last)))
    found = check_records(records, table, last)
    added = run.added(session, log)
    if added is not None and run.stored is not None and last is not None:
        normal = normal_log(added, table, is_decoded)
        check_late_records(context, normal, run.stored, table, last)
    if run.stored is not None and not found.records and not run.is_rebuild:
        return LogBatch(run, run.stored.limit(0), is_empty=True, change_seq=last, kept=records)
    if found.records and last is not None:
        check_log_gap(context, log, last)

    landed_to = greatest(found.last_commit, last)
    ddl = _ddl_records(records, tables, settings, landed_to)
    check_names(ddl, table)
    pending = [_first_pending_ddl(ddl)]
    if is_decoded:
        catalogue = Catalogue((), None)
        placed = records.withColumn("layout", F.lit(None).cast("int"))
    else:
        catalogue = read_catalogue(columns, _boundaries(run, ddl), table, landed_to)
        placed = _with_layout(session, records, catalogue)
        pending.append(_first_pending_row(placed, catalogue))
    horizon = _horizon(context, records, [first for first in pending if first], found)
    return LogBatch(
        run,
        _rows(placed, ddl, catalogue, settings, horizon, run.recorded_at),
        is_empty=horizon is None,
        change_seq=greatest(horizon, last),
        partition_by=["is_ddl"],
        kept=records,
    )


def _ddl_records(
    records: DataFrame, tables: DataFrame, settings: SourceSettings, landed_to: str | None
) -> DataFrame:
    """DDL and SQL records, decoded: ddl_code, ddl_name, sql_text, and the table they concern."""
    layout = F.when(F.col("record_id") == DDL, F.lit(_DDL_LAYOUT)).otherwise(_SQL_LAYOUT)
    decoded = _decoded(
        records.filter(F.col("record_id").isin(DDL, SQL)).withColumn("layout", layout),
        {_DDL_LAYOUT: DDL_COLUMNS, _SQL_LAYOUT: SQL_COLUMNS},
        settings,
    )
    of_statement = Window.partitionBy("transaction_id", "frame", "statement_id")
    named = decoded.withColumns(
        {
            "ddl_code": F.element_at("image", "LOGRECID").try_cast("int"),
            "ddl_name": F.element_at("image", "INFO"),
            "sql_text": F.coalesce(
                F.element_at("image", "SQL"),
                F.min(F.element_at("image", "SQL")).over(of_statement),
            ),
        }
    )
    # without its code it may be a truncate, and must not pass for a record that does nothing
    has_no_code = (F.col("record_id") == DDL) & F.col("ddl_code").isNull()
    says_nothing = has_no_code & F.col("reject_reason").isNull()
    named = _rejected(named, says_nothing, "malformed_message", "LOGRECID is not a number")
    return (
        with_tables(named, tables, settings["source_table"], landed_to)
        .drop("layout", "image")
        .withColumn("image", F.lit(None).cast("map<string,string>"))
    )


def _boundaries(run: LogRun, ddl: DataFrame) -> dict[int, list[str]]:
    """Table id -> addresses of DDL that may have changed its columns, of this run and before.

    DDL that cannot be decoded may have been an ALTER. They are few, and reach the driver.
    """
    changes = F.col("ddl_code").isin(*CHANGES_COLUMNS) | F.col("reject_reason").isNotNull()
    is_boundary = (
        (F.col("record_id") == DDL)
        & F.col("relation_id").isNotNull()
        & F.coalesce(changes, F.lit(False))
    )
    wanted = ["relation_id", "log_address"]
    found = ddl.filter(is_boundary & F.col("commit_address").isNotNull()).select(*wanted)
    if run.stored is not None and not run.is_rebuild:
        found = found.union(run.stored.filter(F.col("is_ddl") & is_boundary).select(*wanted))
    boundaries: dict[int, list[str]] = defaultdict(list)
    for row in found.distinct().collect():
        boundaries[row["relation_id"]].append(row["log_address"])
    return boundaries


def _with_layout(session: SparkSession, records: DataFrame, catalogue: Catalogue) -> DataFrame:
    """The number of the columns that each row was written by; NULL where they are not known."""
    is_valid = (
        (F.col("raw_relation_id") == F.col("layout_relation_id"))
        & F.col("record_id").isin(*ROW_IDS)
        & (F.col("log_address") >= F.col("valid_from"))
        & (F.col("valid_to").isNull() | (F.col("log_address") < F.col("valid_to")))
    )
    return records.join(F.broadcast(catalogue.frame(session)), is_valid, "left").drop(
        "layout_relation_id", "valid_from", "valid_to"
    )


class _Pending(NamedTuple):
    """A record that waits for a snapshot of the catalogue; the first of several compares least."""

    commit_address: str
    log_address: str
    wanted: str
    newest: str | None


def _first_pending_row(placed: DataFrame, catalogue: Catalogue) -> _Pending | None:
    """A row whose columns are not known waits if it is newer than the newest snapshot.

    A later snapshot may have them. An older row cannot be decoded any more, and is rejected.
    """
    is_newer = F.lit(True) if catalogue.newest is None else F.col("log_address") > catalogue.newest
    waits = (
        F.col("record_id").isin(*ROW_IDS)
        & F.col("layout").isNull()
        & F.col("commit_address").isNotNull()
        & is_newer
    )
    found = _first(placed.filter(waits), "commit_address", "log_address", "raw_relation_id")
    if found is None:
        return None
    commit_address, log_address, relation = found
    wanted = f"the columns of the table with REL_ID {relation}"
    return _Pending(commit_address, log_address, wanted, catalogue.newest)


def _first_pending_ddl(ddl: DataFrame) -> _Pending | None:
    """DDL whose table is not in the catalogue yet."""
    columns = ("commit_address", "log_address", "ddl_code", "ddl_name", "newest")
    found = _first(ddl.filter("waits_for_tables"), *columns)
    if found is None:
        return None
    commit_address, log_address, code, name, newest = found
    wanted = f"the id of the table {name} ({DDL_KINDS[code]})"
    return _Pending(commit_address, log_address, wanted, newest)


def _first(rows: DataFrame, *columns: str) -> Row | None:
    """The least values of these columns, taken together; None if there are no rows."""
    found = rows.agg(F.min(F.struct(*columns))).first()
    return found[0] if found else None


def _horizon(
    context: RunContext, records: DataFrame, pending: Sequence[_Pending], found: Found
) -> str | None:
    """The last COMMIT that can be read; what follows waits.

    All transactions from the first record on that waits do, so that changes stay in order.
    """
    if not pending:
        return found.last_commit
    first = min(pending)
    logger.warning(
        f"{context.model}: the log waits from LOGADDR {first.log_address} on, for "
        f"{first.wanted}. The newest snapshot of the catalogue is of "
        f"{first.newest or 'no address'}. Fix: land SYS_TABLES and SYS_COLUMNS again, with the "
        "log's present address as `snapshot_logaddr`. A snapshot counts once the log is landed up "
        "to it."
    )
    before = records.filter(F.col("commit_address") < first.commit_address)
    last = before.agg(F.max("commit_address")).first()
    return last[0] if last else None


def _decoded(
    records: DataFrame,
    layouts: dict[int, tuple[TableColumn, ...]],
    settings: SourceSettings,
) -> DataFrame:
    """`image`, `reject_reason` and `reject_detail` of records with a `layout`."""
    if settings["framing"] == "decoded":
        nothing = F.when(F.col("data").isNull(), F.lit("malformed_message"))
        detail = F.when(F.col("data").isNull(), F.lit("DATA is NULL, or no JSON object"))
        return records.withColumns(
            {"image": F.col("data"), "reject_reason": nothing, "reject_detail": detail}
        )
    # PySpark's stubs lack it
    decode = F.arrow_udf(  # type: ignore[attr-defined]
        batch_decoder(layouts, settings["framing"], settings["char_encoding"]), RESULT_TYPE
    )
    pickle_by_value()
    return (
        records.withColumn("decoded", decode("data", "layout"))
        .withColumn("image", F.col("decoded.values"))
        .withColumn("reject_reason", F.col("decoded.reject_reason"))
        .withColumn("reject_detail", F.col("decoded.reject_detail"))
        .drop("decoded")
    )


def _rejected(records: DataFrame, where: Column, reason: str, detail: str) -> DataFrame:
    """Reject some of the records for another reason than they may have."""
    return records.withColumns(
        {
            "reject_reason": F.when(where, F.lit(reason)).otherwise(F.col("reject_reason")),
            "reject_detail": F.when(where, F.lit(detail)).otherwise(F.col("reject_detail")),
        }
    )


def _rows(
    placed: DataFrame,
    ddl: DataFrame,
    catalogue: Catalogue,
    settings: SourceSettings,
    horizon: str | None,
    recorded_at: str,
) -> DataFrame:
    """The rows of the table: rows of tables and DDL up to the horizon."""
    is_row = F.col("record_id").isin(*ROW_IDS)
    rows = _decoded(placed.filter(is_row), catalogue.layouts, settings).withColumns(
        {
            "relation_id": relation_id(),
            "is_ddl": F.lit(False),
            **{name: F.lit(None) for name in ("ddl_code", "ddl_name", "sql_text")},
        }
    )
    if settings["framing"] != "decoded":
        detail = "the catalogue has no columns of its table at its address"
        rows = _rejected(rows, F.col("layout").isNull(), "unknown_schema", detail)
    known = F.create_map(
        *[F.lit(part) for code, kind in DDL_KINDS.items() for part in (code, kind)]
    )
    ddl_rows = ddl.drop("waits_for_tables", "newest", "schemas").withColumn("is_ddl", F.lit(True))
    both = rows.drop("layout").unionByName(ddl_rows)
    both = both.filter(
        F.lit(False) if horizon is None else F.coalesce("commit_address", "log_address") <= horizon
    )
    is_whole = F.col("commit_address").isNotNull()
    is_image = F.col("record_id") == BEFORE_IMAGE
    data = F.to_json("data") if settings["framing"] == "decoded" else F.hex("data")
    detail = "its transaction has no COMMIT in the log"
    both = (
        _rejected(both, ~is_whole, "unsupported_record", detail)
        .withColumns(
            {
                # an update and its before image share the place of the update
                "change_seq": F.when(is_image, F.coalesce("pair_address", "log_address")).otherwise(
                    F.col("log_address")
                ),
                "changed_at": F.coalesce("committed_at", "landed_at"),
                "ddl_kind": F.coalesce(known[F.col("ddl_code")], F.lit("unknown")),
                "undecoded_data": F.when(F.col("reject_reason").isNotNull(), data),
                "recorded_at": F.lit(recorded_at).cast("timestamp"),
            }
        )
        .withColumn("ddl_kind", F.when(F.col("record_id") == DDL, F.col("ddl_kind")))
    )
    names = [F.col(name).cast(kind).alias(name) for name, kind in LOG_COLUMNS.items()]
    # together what a staging view reads together
    return (
        both.select(*names)
        .repartition("is_ddl", "relation_id")
        .sortWithinPartitions("relation_id", "change_seq")
    )
