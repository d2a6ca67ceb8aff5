"""Erased data does not come back: staged records of erased keys, on their way into the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.erased.erasures import Erasure, ErasuresTable, erasures_of
from dbt_afterimage.erased.key_hash import key_hash_sql
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.log_rows.columns import column_named, is_position
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.schema_evolution import column_types

_KEY_HASH = f"{PREFIX}key_hash"
_UP_TO = f"{PREFIX}erased_up_to"
_COLUMNS_UP_TO = f"{PREFIX}erased_columns_up_to"


@dataclass(frozen=True)
class ErasedKeys:
    """The erasures of one change log; without any, no record is changed.

    Attributes:
        change_log: its name in `afterimage_progress`.
    """

    session: SparkSession
    change_log: str
    key: Sequence[str]
    erasures: Sequence[Erasure]

    @classmethod
    def of_run(cls, session: SparkSession, context: RunContext) -> ErasedKeys:
        """The erasures of the log that a run writes."""
        key, model = context.settings["key"], context.model
        table = ErasuresTable(context.erasures, context.file_format, context.progress)
        found = erasures_of(session, table, model) if key and context.erasures else []
        return cls(session, model, key, found)

    def removed_from_changes(self, changes: DataFrame, sequence: ChangeSequence) -> DataFrame:
        """Staged changes without erased data, by their own positions."""
        return self._removed(changes, F.when(is_position(sequence), F.col("change_seq")))

    def removed_from_loads(self, rows: DataFrame) -> DataFrame:
        """Staged rows of full loads, at the positions of their loads, without erased data."""
        return self._removed(rows, F.col("change_seq"))

    def _removed(self, records: DataFrame, position: Column) -> DataFrame:
        if not self.erasures:
            return records
        types = column_types(records.schema)
        by_name = {name.lower(): name for name in records.columns}
        key = [by_name[name.lower()] for name in self.key]
        given = f"{_KEY_HASH} string, {_UP_TO} string, {_COLUMNS_UP_TO} map<string,string>"
        erased = local_rows(self.session, _by_key(self.erasures), given)
        key_hash = F.expr(key_hash_sql(self.change_log, key, types))
        found = records.join(F.broadcast(erased), key_hash == F.col(_KEY_HASH), "left")
        kept = found.filter(~F.coalesce(position <= F.col(_UP_TO), F.lit(False)))
        names = {name.lower() for each in self.erasures for name in each.columns or ()}
        columns = [name for name in records.columns if name.lower() in names]
        if columns:
            # the raw text has the values, too
            columns.append("raw_record")
        return kept.select(
            *[
                _nulled(name, position) if name in columns else column_named(name)
                for name in records.columns
            ]
        )


def _nulled(name: str, position: Column) -> Column:
    """A column, NULL where it is erased."""
    up_to = F.try_element_at(F.col(_COLUMNS_UP_TO), F.lit(name.lower()))
    if name == "raw_record":
        up_to = F.array_max(F.map_values(F.col(_COLUMNS_UP_TO)))
    is_erased = F.coalesce(position <= up_to, F.lit(False))
    return F.when(~is_erased, column_named(name)).alias(name)


def _by_key(erasures: Iterable[Erasure]) -> list[tuple[str, str | None, dict[str, str]]]:
    """One row per key: up to where its records are erased, and up to where each column is."""
    records: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = defaultdict(dict)
    for each in erasures:
        if each.columns is None:
            records[each.key_hash] = max(each.up_to, records.get(each.key_hash, ""))
        for name in each.columns or ():
            of_key = columns[each.key_hash]
            of_key[name.lower()] = max(each.up_to, of_key.get(name.lower(), ""))
    return [(key, records.get(key), columns.get(key, {})) for key in {*records, *columns}]
