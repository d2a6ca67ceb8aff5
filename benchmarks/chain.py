"""One batch through the chain of a table, beside its rivals; all repeats begin at one state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import rivals
from benchmarks.feed import Feed, land, land_batch
from benchmarks.lakehouse import Lakehouse
from benchmarks.measuring import timed
from benchmarks.project import CHAIN, RAW_SCHEMA, SCHEMA

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
    """The tables of one feed, and what has been measured of them.

    Attributes:
        with_snapshot: whether `dbt snapshot` is among the rivals.
        closed: closed versions in the history per open one, besides those of the feed.
        seconds: by name of a case, one figure per repeat.
        rows: by name of a case, how many rows it wrote.
    """

    lakehouse: Lakehouse
    feed: Feed
    dbt: Dbt
    with_snapshot: bool = True
    closed: int = 0
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Of the source table, the key first."""
        return ["id", *self.feed.data_columns]

    def prepare(self) -> None:
        """Land the base table, build all tables over it, and make the rivals' copies."""
        land(self._session, self.feed, RAW_SCHEMA, self.lakehouse.table_format)
        for table in (*WRITTEN, f"{SCHEMA}.items_snapshot"):
            self._session.sql(f"drop table if exists {table}")
        self.dbt("run", "--select", "stg_items+")
        # a batch before the one that is measured: what a run finds as a rule
        land_batch(self._session, self.feed, RAW_SCHEMA, 0)
        self.dbt("run", "--select", "stg_items+")
        self._lake.create(
            "bench.rival_history",
            f"select {rivals.history_columns(self.columns)} from {HISTORY}",
            like=HISTORY,
            partition="is_current",
        )
        for number in range(self.closed):
            for table in (HISTORY, "bench.rival_history"):
                copies = rivals.closed_copies(table, self._session.table(table).columns, number)
                self._session.sql(rivals.append(table, copies))
        named = ", ".join(self.columns)
        self._lake.create("bench.rival_current", f"select {named} from {CURRENT}", like=CURRENT)
        self._session.sql(f"create schema if not exists {SCHEMA}")
        if self.with_snapshot:
            first = rivals.state_after(CURRENT, self.columns, "timestamp '2026-03-01'")
            self._lake.create("bench.items_state", first)
            self.dbt("snapshot")

    def measure(self, batch: int, repeats: int) -> None:
        """Land a batch, then run the chain and its rivals over it, each time from one state."""
        watermark = self._scalar(f"select coalesce(max(header__change_seq), '') from {RAW}")
        land_batch(self._session, self.feed, RAW_SCHEMA, batch)
        tables = [*WRITTEN, "bench.rival_history", "bench.rival_current"]
        if self.with_snapshot:
            tables.append("bench.items_snapshot")
        is_new = self._is_new()
        for repeat in self._from_one_state(tables, repeats):
            results = self._time("dbt run", lambda: self.dbt("run", "--select", "stg_items+"))
            self._keep_steps(results)
            if repeat == 0:
                self._keep_written_rows(is_new, watermark)
            self._time("empty run", lambda: self.dbt("run", "--select", "stg_items+"))
            self._reads()
            self._appends(watermark)
            self._merges(is_new)
            if self.with_snapshot:
                self._time("dbt snapshot", lambda: self.dbt("snapshot"))

    def measure_late(self, batch: int, repeats: int) -> None:
        """The chain over a batch that has late changes, so that history goes its wide path."""
        is_late = self.feed.late(batch - 1)
        land_batch(self._session, self.feed, RAW_SCHEMA, batch - 1, f"not {is_late}")
        self.dbt("run", "--select", "stg_items+")
        land_batch(self._session, self.feed, RAW_SCHEMA, batch - 1, is_late)
        land_batch(self._session, self.feed, RAW_SCHEMA, batch)
        is_new = self._is_new()
        for _ in self._from_one_state(WRITTEN, repeats):
            self._keep_steps(self.dbt("run", "--select", "stg_items+"), LATE)
            written = self._session.table(HISTORY).where(is_new)
            self.rows[f"items_history{LATE}"] = self._append("items_history", written, LATE)

    def _is_new(self) -> str:
        """Condition: a row of a batch that the next run records."""
        newest = self._scalar(f"select cast(max(recorded_at) as string) from {LOG}")
        return f"recorded_at > timestamp '{newest}'"

    def _from_one_state(self, tables: Iterable[str], repeats: int) -> Iterator[int]:
        """The numbers of the repeats; at the beginning of each the tables are as they are now."""
        states = {table: self._lake.state(table) for table in tables}
        for repeat in range(repeats):
            for table, state in states.items():
                self._lake.go_back(table, state)
            yield repeat

    def _keep_steps(self, results: Any, suffix: str = "") -> None:
        """Keep the seconds that dbt says the models of the chain took."""
        for result in results.results:
            if result.node.name in CHAIN:
                self.seconds[f"{result.node.name}{suffix}"].append(result.execution_time)

    def _keep_written_rows(self, is_new: str, watermark: str) -> None:
        """What each step wrote, cached, and an empty table to append it to."""
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
            self._lake.create(f"bench.appended_{name}", empty, like=table, partition=by)
        unpaired = rivals.unpaired_log(RAW, self.columns, watermark)
        self._lake.create("bench.unpaired", f"select * from ({unpaired}) where false", like=LOG)
        if self.with_snapshot:
            changed_at = f"if({is_new}, timestamp '2026-03-03', timestamp '2026-03-01')"
            changed = rivals.state_after(CURRENT, self.columns, changed_at)
            self._lake.create("bench.items_state", changed)

    def _reads(self) -> None:
        """Reading staging with masks decoded and without.

        The base table has none. A mask that cannot be read is among the reasons for rejecting.
        """
        staged = self._session.table(f"{SCHEMA}.stg_items").filter("change_oper <> 'L'")
        without = staged.drop("declared_changed_columns", "known_columns", "reject_reason")
        for name, rows in (("staging", staged), ("staging without masks", without)):
            self._time(name, rows.write.format("noop").mode("overwrite").save)

    def _appends(self, watermark: str) -> None:
        for name in ("items_changes", "items_history", "items_current", "items_field_changes"):
            self._append(name, self._session.table(f"written_{name}"))
        unpaired = rivals.unpaired_log(RAW, self.columns, watermark)
        self._sql("unpaired log", rivals.append("bench.unpaired", unpaired))

    def _append(self, name: str, rows: DataFrame, suffix: str = "") -> int:
        """Append what a step wrote, from memory, to a table like its own; how many rows."""
        rows = rows.cache()
        count = rows.count()
        rows.createOrReplaceTempView("appended_rows")
        statement = rivals.append(f"bench.appended_{name}", "select * from appended_rows")
        self._sql(f"append {name}{suffix}", statement)
        rows.unpersist()
        return count

    def _merges(self, is_new: str) -> None:
        history = rivals.history_merge("bench.rival_history", LOG, self.columns, is_new)
        current = rivals.current_merge("bench.rival_current", LOG, self.columns, is_new)
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
    def _lake(self) -> Lakehouse:
        return self.lakehouse

    @property
    def _session(self) -> Any:
        return self.lakehouse.session
