"""The tables of the project's warehouse as Arrow tables, without a JVM wherever that is possible.

Iceberg tables in a catalog that is an SQLite file, as the embedded target has it, are read by
PyIceberg. Views, whose text is Spark's SQL, and all tables of other targets are read by Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from dbt_afterimage.cli.support.project_session import load_profile, project_session
from dbt_afterimage.cli.support.working import working
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings.suggestions import similar_names
from dbt_afterimage.spark.warehouse_folder import check_file

if TYPE_CHECKING:
    import pyarrow as pa

TABLE, VIEW = "table", "view"
PROGRESS = "afterimage_progress"
_SHOWN_NAMES = 3


class WarehouseError(AfterimageError):
    """The warehouse, or a table of it, is not there or cannot be read."""


@dataclass(frozen=True)
class TableVersion:
    """A commit to a table, as its metadata describes it; None where the metadata does not.

    Attributes:
        committed_at: when, UTC.
        added: rows that it added, those of rewritten files included.
        rows: rows of the table after it.
        bytes: size of the table's files after it.
    """

    committed_at: datetime
    added: int | None
    rows: int | None
    bytes: int | None


class Warehouse(Protocol):
    """Reads relations by schema and name."""

    def relations(self, schema: str) -> dict[str, str]:
        """`TABLE` or `VIEW` by name; empty if there is no such schema."""

    def schemas(self) -> list[str]:
        """Names of all schemas."""

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a relation that exists, all or those of a condition; times are UTC.

        Only the given columns are read from the files.
        """

    def files(self, schema: str, name: str) -> tuple[int, int]:
        """Number and bytes of the files of a table, from its metadata."""

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        """Commits that a table's metadata still has, the oldest first; empty where it has none."""


class QueryableWarehouse(Warehouse, Protocol):
    """Reads relations in batches too."""

    def arrow_schema(self, schema: str, name: str) -> pa.Schema:
        """The columns of a relation that exists."""

    def batches(self, schema: str, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
        """All rows of a relation that exists, with some columns, in batches; times are UTC."""


class SparkWarehouse:
    """The tables that the project's Spark session reaches; the session starts on first use."""

    def __init__(self, target: str | None = None) -> None:
        self._target = target

    @cached_property
    def _session(self) -> Any:
        with working("Starting Spark"):
            return project_session(self._target)

    def schemas(self) -> list[str]:
        """Names of all schemas."""
        return [row[0] for row in self._session.sql("show schemas").collect()]

    def relations(self, schema: str) -> dict[str, str]:
        """`TABLE` or `VIEW` by name; empty if there is no such schema."""
        if schema not in self.schemas():
            return {}
        found = {}
        for kind, statement in ((TABLE, "show tables"), (VIEW, "show views")):
            for row in self._session.sql(f"{statement} in `{schema}`").collect():
                if not row["isTemporary"]:
                    found[row[1]] = kind
        return found

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a relation that exists, all or those of a condition; times are UTC."""
        from dbt_afterimage.spark.identifiers import quoted

        with working(f"Reading {schema}.{name} with Spark"):
            rows = self._table(schema, name).filter(where or "true")
            return rows.select(*map(quoted, columns or rows.columns)).toArrow()

    def arrow_schema(self, schema: str, name: str) -> pa.Schema:
        """The columns of a relation that exists."""
        return self._table(schema, name).limit(0).toArrow().schema

    def batches(self, schema: str, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
        """All rows of a relation that exists, with some columns; Spark sends them at once."""
        return self.arrow(schema, name, columns=columns).to_reader()

    def _table(self, schema: str, name: str) -> Any:
        from dbt_afterimage.storage.stored_view import readable_name

        return self._session.table(readable_name(self._session, f"`{schema}`.`{name}`"))

    def files(self, schema: str, name: str) -> tuple[int, int]:
        """Number and bytes of the files of a table, from its metadata."""
        relation = f"`{schema}`.`{name}`"
        try:
            row = self._session.sql(f"describe detail {relation}").first()
            return int(row["numFiles"]), int(row["sizeInBytes"])
        except Exception:  # not a Delta table
            row = self._session.sql(
                f"select count(*), coalesce(sum(file_size_in_bytes), 0) from {relation}.files"
            ).first()
            return int(row[0]), int(row[1])

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        """Commits that a table's metadata still has, the oldest first; empty where it has none."""
        relation = f"`{schema}`.`{name}`"
        try:
            rows = self._session.sql(
                f"select unix_millis(s.committed_at), s.summary from {relation}.snapshots as s "
                f"join {relation}.history as h using (snapshot_id) where h.is_current_ancestor "
                "order by s.committed_at"
            ).collect()
            return [_iceberg_version(_utc(row[0]), row[1] or {}) for row in rows]
        except Exception:  # not an Iceberg table
            pass
        try:
            history = self._session.sql(f"describe history {relation}")
            rows = history.selectExpr(
                "unix_millis(timestamp) as committed_at", "operation", "operationMetrics"
            ).collect()
            return [_delta_version(row) for row in reversed(rows)]
        except Exception:  # a view, or a table of another format
            return []


class AllSchemas:
    """A warehouse whose target schema also has the tables that a project has in other schemas.

    Their names are those of the progress table: with the schema. What was read once is kept in
    memory, however many figures are made of it.

    Args:
        warehouse: all schemas.
        schema: the target's, with the progress table.
    """

    def __init__(self, warehouse: Warehouse, schema: str) -> None:
        self._warehouse, self._schema = warehouse, schema
        self._arrow, self._versions = cache(warehouse.arrow), cache(warehouse.versions)
        self._relations_of = cache(warehouse.relations)

    @cached_property
    def _relations(self) -> dict[str, str]:
        found = dict(self._relations_of(self._schema))
        if PROGRESS in found:
            models = self._arrow(self._schema, PROGRESS, None, None)["model"]
            places = {name.rpartition(".")[0] for name in models.to_pylist()} - {""}
            for place in places:
                relations = self._relations_of(place)
                found |= {f"{place}.{name}": kind for name, kind in relations.items()}
        return found

    def _place(self, schema: str, name: str) -> tuple[str, str]:
        place, _, table = name.rpartition(".")
        return place or schema, table

    def schemas(self) -> list[str]:
        """Names of all schemas."""
        return self._warehouse.schemas()

    def relations(self, schema: str) -> dict[str, str]:
        """`TABLE` or `VIEW` by name; empty if there is no such schema."""
        return self._relations if schema == self._schema else self._relations_of(schema)

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a relation that exists, all or those of a condition; times are UTC."""
        return self._arrow(*self._place(schema, name), where, columns and tuple(columns))

    def files(self, schema: str, name: str) -> tuple[int, int]:
        """Number and bytes of the files of a table, from its metadata."""
        return self._warehouse.files(*self._place(schema, name))

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        """Commits that a table's metadata still has, the oldest first; empty where it has none."""
        return self._versions(*self._place(schema, name))


class IcebergWarehouse:
    """An Iceberg catalog in an SQLite file; its views are read by Spark.

    Args:
        folder: the warehouse, or its address in an object store.
        storage: how to reach the object store, in PyIceberg's words.

    Raises:
        WarehouseError: the file does not exist, or PyIceberg is not installed.
        MovedWarehouseError: the file was moved, and its tables with it.
    """

    def __init__(
        self,
        name: str,
        file: Path,
        folder: str,
        views: QueryableWarehouse,
        storage: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if not file.exists():
            raise WarehouseError(
                f"There is no warehouse in {file.parent}: {file.name} does not exist there. Fix: "
                "set AFTERIMAGE_WAREHOUSE to the folder of the warehouse, or build one with "
                "`dbt build`."
            )
        check_file(file)
        try:
            from pyiceberg.catalog.sql import SqlCatalog
        except ImportError as error:
            raise missing_extra("pyiceberg") from error
        self._name, self._views = name, views
        self._catalog = SqlCatalog(name, uri=f"sqlite:///{file}", warehouse=folder, **storage)

    @cached_property
    def _by_schema(self) -> Mapping[str, dict[str, str]]:
        from sqlalchemy import text

        # the catalog's own calls do not list views
        statement = text(
            "select table_namespace, table_name, iceberg_type from iceberg_tables "
            "where catalog_name = :name order by table_namespace, table_name"
        )
        found: dict[str, dict[str, str]] = {}
        with self._catalog.engine.connect() as connection:
            for schema, name, kind in connection.execute(statement, {"name": self._name}):
                found.setdefault(str(schema), {})[str(name)] = VIEW if kind == "VIEW" else TABLE
        return found

    def schemas(self) -> list[str]:
        """Names of all schemas that hold something."""
        return list(self._by_schema)

    def relations(self, schema: str) -> dict[str, str]:
        """`TABLE` or `VIEW` by name; empty if there is no such schema."""
        return self._by_schema.get(schema, {})

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of a relation that exists, all or those of a condition; times are UTC."""
        if self.relations(schema)[name] == VIEW:
            return self._views.arrow(schema, name, where, columns)
        with working(f"Reading {schema}.{name}"):
            table = self._catalog.load_table((schema, name))
            selected = tuple(columns or ("*",))
            return table.scan(row_filter=where or "true", selected_fields=selected).to_arrow()

    def arrow_schema(self, schema: str, name: str) -> pa.Schema:
        """The columns of a relation that exists."""
        if self.relations(schema)[name] == VIEW:
            return self._views.arrow_schema(schema, name)
        return self._catalog.load_table((schema, name)).schema().as_arrow()

    def batches(self, schema: str, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
        """All rows of a relation that exists, with some columns; a table is read file by file."""
        if self.relations(schema)[name] == VIEW:
            return self._views.batches(schema, name, columns)
        table = self._catalog.load_table((schema, name))
        return table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()

    def files(self, schema: str, name: str) -> tuple[int, int]:
        """Number and bytes of the files of a table, from its metadata."""
        snapshot = self._catalog.load_table((schema, name)).current_snapshot()
        summary: Any = snapshot.summary if snapshot and snapshot.summary else {}
        count = sum(
            int(summary.get(kind) or 0) for kind in ("total-data-files", "total-delete-files")
        )
        return count, int(summary.get("total-files-size") or 0)

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        """Commits that a table's metadata still has, the oldest first; empty where it has none."""
        if self.relations(schema)[name] == VIEW:
            return []
        table = self._catalog.load_table((schema, name))
        found = []
        snapshot = table.current_snapshot()
        while snapshot is not None:
            summary = snapshot.summary.additional_properties if snapshot.summary else {}
            found.append(_iceberg_version(_utc(snapshot.timestamp_ms), summary))
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        return found[::-1]


def project_warehouse(target: str | None = None) -> tuple[QueryableWarehouse, str]:
    """The warehouse of the project in the working folder, and the schema of its target.

    Raises:
        ProfileError: the profile cannot be used.
        WarehouseError: the warehouse does not exist.
    """
    credentials = load_profile(target).credentials
    parameters = credentials.server_side_parameters or {}
    spark = SparkWarehouse(target)
    return sqlite_warehouse(parameters, spark) or spark, str(credentials.schema)


def sqlite_warehouse(
    parameters: Mapping[str, Any], views: QueryableWarehouse
) -> IcebergWarehouse | None:
    """The Iceberg warehouse that a profile's `server_side_parameters` describe.

    Returns:
        None if their default catalog is not an Iceberg catalog in an SQLite file.
    """
    name = str(parameters.get("spark.sql.defaultCatalog", ""))
    prefix = f"spark.sql.catalog.{name}"
    uri = re.fullmatch(r"jdbc:sqlite:([^?]+)(\?.*)?", str(parameters.get(f"{prefix}.uri", "")))
    if not uri:
        return None
    folder, storage = str(parameters[f"{prefix}.warehouse"]), _storage(parameters, prefix)
    return IcebergWarehouse(name, Path(uri[1]), folder, views, storage)


def _storage(parameters: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """A catalog's settings of Amazon S3 and of stores like it; PyIceberg has Iceberg's names."""
    given = {
        key.removeprefix(f"{prefix}."): str(value)
        for key, value in parameters.items()
        if key.startswith((f"{prefix}.s3.", f"{prefix}.client."))
    }
    # without a region PyIceberg queries Amazon for the bucket's region, whatever the endpoint
    region = os.environ.get("AWS_REGION")
    return {"client.region": region, **given} if region else given


def _iceberg_version(committed_at: datetime, summary: Mapping[str, str]) -> TableVersion:
    """A version from a snapshot's summary; the names are those of Iceberg's specification."""
    rows = summary.get("total-records")
    # a delete file by position names rows; one by values does not say how many it deletes
    deleted = 0 if rows is None else int(summary.get("total-position-deletes") or 0)
    is_known = rows is not None and int(summary.get("total-equality-deletes") or 0) == 0
    size = summary.get("total-files-size")
    return TableVersion(
        committed_at,
        added=int(summary.get("added-records") or 0),
        rows=int(rows or 0) - deleted if is_known else None,
        bytes=None if size is None else int(size),
    )


def _delta_version(row: Any) -> TableVersion:
    """A version from a row of Delta's `describe history`, which has no totals."""
    metrics = row["operationMetrics"] or {}
    added = metrics.get("numOutputRows") if row["operation"] != "OPTIMIZE" else 0
    if row["operation"] == "MERGE":
        added = metrics.get("numTargetRowsInserted")
    return TableVersion(
        _utc(row["committed_at"]), None if added is None else int(added), None, None
    )


def _utc(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def missing_extra(package: str) -> WarehouseError:
    """The error for a package of the extra `read` that is not installed."""
    return WarehouseError(
        f"This command needs {package}, which is not installed. Fix: "
        "pip install 'dbt-afterimage[read]'"
    )


def similar(name: str, names: list[str]) -> str:
    """A sentence with the names that are most like this one, or with some of all names."""
    close = similar_names(name, names, _SHOWN_NAMES, cutoff=0.5)
    if close:
        return f"Similar names: {', '.join(close)}."
    if not names:
        return "It is empty."
    more = ", ..." if len(names) > _SHOWN_NAMES else "."
    return f"It has {', '.join(names[:_SHOWN_NAMES])}{more}"
