"""A small project on one change table of people, which tests change in many ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.comparing import last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import (
    changes_model,
    history_model,
    other_marts,
    write_files,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
TABLES = ("changes", "history", "current", "field_changes")


def seq(number: int) -> str:
    return f"2026030108000000{number:019d}"


def record(number: int, oper: str, key: int, name: str) -> tuple[Any, ...]:
    """A record of PEOPLE in which only the name matters."""
    return (seq(number), oper, key, name, None, 0.5, "1.00")


HEADERS = {"header__change_seq": "string", "header__change_oper": "string"}
PEOPLE = {
    **HEADERS,
    "id": "int",
    "name": "string",
    "note": "string",
    "score": "float",
    "fee": "decimal(5,2)",
}
# the same table later: types are wider, `note` is gone and `city` is new
PEOPLE_LATER = {
    **HEADERS,
    "id": "bigint",
    "name": "string",
    "score": "double",
    "fee": "decimal(9,2)",
    "city": "string",
}
BIG = 3_000_000_000
LATER = [
    (seq(1), "I", 1, "Ann", 0.5, "1.25", None),
    (seq(2), "I", 2, "Bob", 1.5, "2.50", None),
    (seq(3), "B", 1, "Ann", 0.5, "1.25", None),
    (seq(3), "U", 1, "Ann", 0.1, "1.25", "Oslo"),
    (seq(4), "I", BIG, "Cid", 2.5, "1234567.89", "Rome"),
    (seq(5), "D", 2, "Bob", 1.5, "2.50", None),
]

STAGING = {"staging/stg_people.sql": "{{ stage_qlik_change_table('raw', 'people__ct') }}\n"}
MODELS = {
    **STAGING,
    **changes_model("people", "stg_people"),
    **history_model("people"),
    **other_marts("people"),
}


@dataclass(frozen=True)
class People:
    """The small project, its source's settings, and the tables it makes."""

    dbt: DbtProject
    spark: SparkSession
    table_format: str

    def declare(self, types: Mapping[str, str] = MappingProxyType({}), /, **settings: Any) -> None:
        """Write the source's YAML: `key` is `id` unless given, `types` are declared ones."""
        meta = {"system": "qlik_change_table", "key": ["id"], **settings}
        columns = [{"name": name, "data_type": kind} for name, kind in types.items()]
        table = {
            "name": "people__ct",
            "config": {"meta": {"afterimage": meta}},
            "columns": columns,
        }
        tables = [table, {"name": "people"}]
        raw = {"name": "raw", "schema": f"{self.dbt.schema}_raw", "tables": tables}
        write_files(self.dbt.path, {"models/sources.yml": {"version": 2, "sources": [raw]}})

    def land(self, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> None:
        """The raw table recreated, with these columns and records."""
        schema = f"{self.dbt.schema}_raw"
        self.spark.sql(f"create schema if not exists {schema}")
        self.spark.sql(f"drop table if exists {schema}.people__ct")
        kinds = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        created = f"create table {schema}.people__ct ({kinds}) using {self.table_format}"
        if self.table_format == "delta" and any(" " in name for name in columns):
            created += " tblproperties ('delta.columnMapping.mode' = 'name')"
        self.spark.sql(created)
        self.append(columns, rows)

    def append(self, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> None:
        """More records of the raw table."""
        if rows:
            texts = ", ".join(f"{quoted(name)} string" for name in columns)
            given = [tuple(None if value is None else str(value) for value in row) for row in rows]
            names = {quoted(name): kind for name, kind in columns.items()}
            cast = [f"cast({name} as {kind}) as {name}" for name, kind in names.items()]
            landed = local_rows(self.spark, given, texts).selectExpr(*cast)
            landed.writeTo(f"{self.dbt.schema}_raw.people__ct").append()

    def name(self, table: str) -> str:
        return f"{self.dbt.schema}.people_{table}"

    def rows(self, table: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        found = self.spark.sql(f"select {columns} from {self.name(table)} order by {order}")
        return [tuple(row) for row in found.collect()]

    def types(self, table: str) -> dict[str, str]:
        fields = self.spark.table(self.name(table)).schema.fields
        return {field.name: field.dataType.simpleString() for field in fields}

    def properties(self, table: str, prefix: str = "afterimage.") -> dict[str, str]:
        """Properties of a table whose names begin with `prefix`, by name."""
        rows = self.spark.sql(f"show tblproperties {self.name(table)}").collect()
        return {row[0]: row[1] for row in rows if row[0].startswith(prefix)}

    def versions(self) -> dict[str, Any]:
        """What every commit to one of the tables changes."""
        tables = [*(self.name(table) for table in TABLES), f"{self.dbt.schema}.afterimage_progress"]
        return last_commits(self.spark, tables, self.table_format)

    def refusal_of(self, columns: dict[str, str], rows: list[tuple[Any, ...]]) -> str:
        """What a run says about these columns and records; then all is as it was."""
        self.land(columns, rows)
        with self.untouched():
            message = self.dbt.error_of("run", "--select", "stg_people", "people_changes")
        self.land(PEOPLE_LATER, LATER)
        self.dbt("run", "--select", "stg_people")
        return message

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Nothing is committed to any table meanwhile."""
        before = self.versions()
        yield
        assert self.versions() == before


def start(
    dbt: DbtProject, spark: SparkSession, table_format: str, models: Mapping[str, Any]
) -> People:
    """Write the project into the folder of `dbt`. Nothing is landed yet."""
    write_settings(dbt.path)
    write_files(dbt.path / "models", models)
    people = People(dbt, spark, table_format)
    people.declare()
    return people


def build_people(dbt: DbtProject, spark: SparkSession, table_format: str) -> People:
    """All models after two runs, between which the change table got other columns and new records.

    Meanwhile the tables lose their properties, as if an older version had created them.
    """
    people = start(dbt, spark, table_format, MODELS)
    people.land(
        PEOPLE,
        [
            (seq(1), "I", 1, "Ann", "first", 0.5, "1.25"),
            (seq(2), "I", 2, "Bob", "second", 1.5, "2.50"),
        ],
    )
    dbt("run")
    for table in TABLES:
        forgotten = {*people.properties(table)} - {"afterimage.hashed_after"}
        keys = ", ".join(f"'{name}'" for name in sorted(forgotten))
        spark.sql(f"alter table {people.name(table)} unset tblproperties ({keys})")
    people.land(PEOPLE_LATER, LATER)
    dbt("run")
    return people
