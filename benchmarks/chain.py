"""Measures one batch through a table's chain and its baselines, each repeat from the same state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import baselines
from benchmarks.measuring import timed
from benchmarks.project import CHAIN, RAW_SCHEMA, SCHEMA
from benchmarks.warehouse import Warehouse
from benchmarks.workload import Workload, append_batch, create_raw_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Dbt = Callable[..., Any]

RAW = f"{RAW_SCHEMA}.items__ct"
LOG, HISTORY = f"{SCHEMA}.items_changes", f"{SCHEMA}.items_history"
CURRENT, FIELDS = f"{SCHEMA}.items_current", f"{SCHEMA}.items_field_changes"
LATE = ", late changes"
PROGRESS = f"{SCHEMA}.afterimage_progress"
WRITTEN = (LOG, f"{LOG}_rejected", HISTORY, CURRENT, FIELDS, PROGRESS)


@dataclass
class Chain:
    """The tables of one workload, and the figures measured on them.

    Attributes:
        with_snapshot: whether `dbt snapshot` is one of the baselines.
        closed: extra closed versions in the history per open version.
        seconds: by case, one figure per repeat.
        rows: by case, how many rows it wrote.
    """

    warehouse: Warehouse
    workload: Workload
    dbt: Dbt
    with_snapshot: bool = True
    closed: int = 0
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Columns of the source table, the key first."""
        return ["id", *self.workload.data_columns]

    def prepare(self) -> None:
        """Create the raw tables, build all models, and copy the tables of the baselines."""
        create_raw_tables(self._session, self.workload, RAW_SCHEMA, self.warehouse.table_format)
        for table in (*WRITTEN, f"{SCHEMA}.items_snapshot"):
            self._session.sql(f"drop table if exists {table}")
        self.dbt("run", "--select", "stg_items+")
        # a batch before the measured one: an ordinary run finds tables that have changed before
        append_batch(self._session, self.workload, RAW_SCHEMA, 0)
        self.dbt("run", "--select", "stg_items+")
        self.warehouse.create(
            "bench.baseline_history",
            f"select {baselines.history_columns(self.columns)} from {HISTORY}",
            like=HISTORY,
            partition="is_current",
        )
        for number in range(self.closed):
            for table in (HISTORY, "bench.baseline_history"):
                copies = baselines.closed_copies(table, self._session.table(table).columns, number)
                self._session.sql(baselines.append(table, copies))
        named = ", ".join(self.columns)
        self.warehouse.create(
            "bench.baseline_current", f"select {named} from {CURRENT}", like=CURRENT
        )
        self._session.sql(f"create schema if not exists {SCHEMA}")
        if self.with_snapshot:
            first = baselines.state_after(CURRENT, self.columns, "timestamp '2026-03-01'")
            self.warehouse.create("bench.items_state", first)
            self.dbt("snapshot")

    def measure(self, batch: int, repeats: int) -> None:
        """Append a batch to the raw table; run the chain and its baselines over it, repeatedly."""
        watermark = self._scalar(f"select coalesce(max(header__change_seq), '') from {RAW}")
        append_batch(self._session, self.workload, RAW_SCHEMA, batch)
        tables = [*WRITTEN, "bench.baseline_history", "bench.baseline_current"]
        if self.with_snapshot:
            tables.append("bench.items_snapshot")
        is_new = self._is_new()
        for repeat in self._from_same_state(tables, repeats):
            results = self._time("dbt run", lambda: self.dbt("run", "--select", "stg_items+"))
            self._record_steps(results)
            if repeat == 0:
                self._save_written_rows(is_new, watermark)
            self._time("empty run", lambda: self.dbt("run", "--select", "stg_items+"))
            self._reads()
            self._appends(watermark)
            self._merges(is_new)
            if self.with_snapshot:
                self._time("dbt snapshot", lambda: self.dbt("snapshot"))

    def measure_late(self, batch: int, repeats: int) -> None:
        """Measure a batch with late changes, for which history takes the replay path."""
        is_late = self.workload.late(batch - 1)
        append_batch(self._session, self.workload, RAW_SCHEMA, batch - 1, f"not {is_late}")
        self.dbt("run", "--select", "stg_items+")
        append_batch(self._session, self.workload, RAW_SCHEMA, batch - 1, is_late)
        append_batch(self._session, self.workload, RAW_SCHEMA, batch)
        is_new = self._is_new()
        for _ in self._from_same_state(WRITTEN, repeats):
            self._record_steps(self.dbt("run", "--select", "stg_items+"), LATE)
            written = self._session.table(HISTORY).where(is_new)
            self.rows[f"items_history{LATE}"] = self._append("items_history", written, LATE)

    def _is_new(self) -> str:
        """Condition that selects the rows of the batch that the next run records."""
        newest = self._scalar(f"select cast(max(recorded_at) as string) from {LOG}")
        return f"recorded_at > timestamp '{newest}'"

    def _from_same_state(self, tables: Iterable[str], repeats: int) -> Iterator[int]:
        """Yield the number of each repeat, with the tables restored to their present state."""
        states = {table: self.warehouse.state(table) for table in tables}
        for repeat in range(repeats):
            for table, state in states.items():
                self.warehouse.restore(table, state)
            yield repeat

    def _record_steps(self, results: Any, suffix: str = "") -> None:
        """Record the execution times that dbt reports for the models of the chain."""
        for result in results.results:
            if result.node.name in CHAIN:
                self.seconds[f"{result.node.name}{suffix}"].append(result.execution_time)

    def _save_written_rows(self, is_new: str, watermark: str) -> None:
        """Save what each step wrote, and create an empty table to append the rows to."""
        for name, table in (
            ("items_changes", LOG),
            ("items_history", HISTORY),
            ("items_current", CURRENT),
            ("items_field_changes", FIELDS),
        ):
            written = self._session.table(table).where(is_new)
            path = f"{self._session.conf.get('bench.scratch')}/{name}"
            written.write.mode("overwrite").parquet(path)
            self._session.read.parquet(path).createOrReplaceTempView(f"written_{name}")
            self.rows[name] = self._session.table(f"written_{name}").count()
            by = "is_current" if table == HISTORY else "change_date" if table == LOG else ""
            empty = f"select * from {table} where false"
            self.warehouse.create(f"bench.appended_{name}", empty, like=table, partition=by)
        unpaired = baselines.unpaired_log(RAW, self.columns, watermark)
        self.warehouse.create("bench.unpaired", f"select * from ({unpaired}) where false", like=LOG)
        if self.with_snapshot:
            changed_at = f"if({is_new}, timestamp '2026-03-03', timestamp '2026-03-01')"
            changed = baselines.state_after(CURRENT, self.columns, changed_at)
            self.warehouse.create("bench.items_state", changed)

    def _reads(self) -> None:
        """Read staging with and without decoding the change masks.

        Rows of the base table are left out: they have no mask. The reject reason is left out with
        the masks, because it depends on them.
        """
        staged = self._session.table(f"{SCHEMA}.stg_items").filter("change_oper <> 'L'")
        without = staged.drop("declared_changed_columns", "known_columns", "reject_reason")
        for name, rows in (("staging", staged), ("staging without masks", without)):
            self._time(name, rows.write.format("noop").mode("overwrite").save)

    def _appends(self, watermark: str) -> None:
        for name in ("items_changes", "items_history", "items_current", "items_field_changes"):
            self._append(name, self._session.table(f"written_{name}"))
        unpaired = baselines.unpaired_log(RAW, self.columns, watermark)
        self._sql("unpaired log", baselines.append("bench.unpaired", unpaired))

    def _append(self, name: str, rows: DataFrame, suffix: str = "") -> int:
        """Append the rows of a step, from memory, to a table like its own; returns their number."""
        rows = rows.cache()
        count = rows.count()
        rows.createOrReplaceTempView("appended_rows")
        statement = baselines.append(f"bench.appended_{name}", "select * from appended_rows")
        self._sql(f"append {name}{suffix}", statement)
        rows.unpersist()
        return count

    def _merges(self, is_new: str) -> None:
        history = baselines.history_merge("bench.baseline_history", LOG, self.columns, is_new)
        current = baselines.current_merge("bench.baseline_current", LOG, self.columns, is_new)
        self._sql("hand-written history", history)
        self._sql("hand-written current", current)

    def _sql(self, name: str, statement: str) -> None:
        self._time(name, lambda: self._session.sql(statement))

    def _time(self, name: str, action: Callable[[], Any]) -> Any:
        seconds, result = timed(action)
        self.seconds[name].append(seconds)
        return result

    def _scalar(self, query: str) -> str:
        return str(self._session.sql(query).collect()[0][0])

    @property
    def _session(self) -> Any:
        return self.warehouse.session
