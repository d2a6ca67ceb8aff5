"""Lands files: extracts of change tables and of full loads that somebody exported.

Each row has the file that it came from in `_landed_file`, so a file is landed once, and with its
rows in one commit. Staging reads neither that column nor `_landed_bytes`.

Spark's own inference would make numbers of texts such as `007` and of change sequences. Here a
column of a CSV file is of another type than text only if its values are written so by that type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import AfterimageError, explained
from dbt_afterimage.internal_columns import LANDED_BYTES, LANDED_COLUMNS, LANDED_FILE
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.schema_contract import Alterations
from dbt_afterimage.storage.schema_evolution import alter_table, column_types

_KINDS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}
_COMPRESSED = (".gz", ".bz2", ".zst")
_OPTIONS = {
    "csv": {
        "header": "true",
        # as in RFC 4180: a value may hold a line break, and its quotes are doubled
        "multiLine": "true",
        "escape": '"',
        # stops where the columns of a file come in another order
        "enforceSchema": "false",
        "mode": "FAILFAST",
    },
    "json": {"mode": "FAILFAST"},
    "parquet": {"mergeSchema": "true"},
}
_TEXT_PREFIX = "header__"
"""Qlik's change sequences and masks are text, though all may look like numbers."""
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_DECIMAL = r"^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_SHOWN_NAMES = 5


class FilesError(AfterimageError):
    """The files cannot be landed; nothing was."""


@dataclass(frozen=True)
class Landed:
    """The result of a landing.

    Attributes:
        rows: appended to the table.
        files: that they came from.
        known: files that were landed before.
        columns: name -> type, of columns that the table has since then.
    """

    rows: int
    files: int
    known: int
    columns: Mapping[str, str]


def land_files(
    session: SparkSession,
    paths: Sequence[str],
    table: str,
    table_format: str,
    types: Mapping[str, str],
    options: Mapping[str, str],
) -> Landed:
    """Append the rows of all files that were not landed yet; the table is created if missing.

    Args:
        paths: files and folders, absolute or with a scheme; a folder is searched as a whole.
        types: column -> its type, for columns that the table does not have yet.
        options: of Spark's reader, such as `sep`.

    Raises:
        FilesError: there is no file, or one cannot be landed.
    """
    try:
        sizes = _listed(session, paths)
        kind = _kind(sizes)
        exists = session.catalog.tableExists(table)
        new = sorted(sizes.keys() - (_known(session, table, sizes) if exists else set()))
        if not new:
            return Landed(0, 0, len(sizes), {})
        rows = _read(session, kind, [unquote(path) for path in new], options)
        columns = {name: kind for name, kind in rows.dtypes if name not in LANDED_COLUMNS}
        has = column_types(session.table(table).schema) if exists else {}
        wanted = _types(rows, kind, columns, types, has)
        rows = _typed(rows, columns, wanted)
        if exists:
            added = {name: of for name, of in wanted.items() if name.lower() not in _lower(has)}
            named = {quoted(name): of for name, of in added.items()}
            alter_table(session, table, Alterations(added=named), table_format)
            present = _lower(rows.columns)
            rows = rows.select(
                *[
                    F.col(quoted(name)) if name.lower() in present else F.lit(None).alias(name)
                    for name in session.table(table).columns
                ]
            )
            rows.writeTo(table).append()
        else:
            added = wanted
            session.sql(f"create schema if not exists {table.rpartition('.')[0]}")
            table_writer(rows, table, table_format).create()
        landed = session.table(table).filter(F.col(LANDED_FILE).isin(new)).count()
    except (PySparkException, Py4JError) as error:
        raise FilesError(
            f"`land files`: Spark cannot read the files into {table}, and nothing was landed: "
            f"{_cause(error)} Fix: land files with different columns in calls of their own; if "
            "values are separated otherwise, say how, such as --option sep=';'."
        ) from error
    return Landed(landed, len(new), len(sizes) - len(new), added)


def _cause(error: Exception) -> str:
    """The file that Spark names, and the last cause: what is between says which task failed."""
    text = str(error)
    file = re.search(r"reading file \S+", text)
    causes = re.findall(r"^Caused by: (.+)$", text, re.M) or [explained(text).strip()]
    return f"{file[0]}: {causes[-1]}" if file else str(causes[-1]).splitlines()[0]


def _listed(session: SparkSession, paths: Sequence[str]) -> dict[str, int]:
    """File -> bytes, of all files; Spark lists them, so they may be in an object store."""
    found = (
        session.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .load(list(paths))
        .select("_metadata.file_path", "_metadata.file_size")
    )
    sizes = {row[0]: row[1] for row in found.collect()}
    if not sizes:
        raise FilesError(
            f"`land files`: there is no file in {', '.join(paths)}. Fix: correct the path."
        )
    return sizes


def _kind(files: Mapping[str, int]) -> str:
    kinds: dict[str, str] = {}
    for path in sorted(files):
        name = path.rpartition("/")[2].lower()
        for suffix in _COMPRESSED:
            name = name.removesuffix(suffix)
        kind = _KINDS.get("." + name.rpartition(".")[2])
        if kind is None:
            raise FilesError(
                f"`land files`: {unquote(path)} is of an unknown kind. Allowed: names that end in "
                f"{', '.join(_KINDS)}, and behind that in {', '.join(_COMPRESSED)}. Nothing was "
                "landed. Fix: rename the file, or name the files one by one."
            )
        kinds.setdefault(kind, path)
    if len(kinds) > 1:
        raise FilesError(
            f"`land files`: the files are of several kinds, such as "
            f"{' and '.join(unquote(path) for path in kinds.values())}. Nothing was landed. Fix: "
            "land each kind in a call of its own."
        )
    return next(iter(kinds))


def _known(session: SparkSession, table: str, sizes: Mapping[str, int]) -> set[str]:
    """Those of the files that the table has.

    Raises:
        FilesError: the table was landed otherwise, or a file has changed since.
    """
    stored = session.table(table)
    if LANDED_FILE not in stored.columns:
        raise FilesError(
            f"`land files`: {table} exists and has no column {LANDED_FILE}: something else lands "
            "it. Nothing was landed. Fix: give another --table."
        )
    rows = stored.select(LANDED_FILE, LANDED_BYTES).distinct().collect()
    known = {row[0]: row[1] for row in rows}
    changed = sorted(path for path in sizes if known.get(path, sizes[path]) != sizes[path])
    if changed:
        shown = ", ".join(
            f"{unquote(path)} ({known[path]:,} bytes then, {sizes[path]:,} now)"
            for path in changed[:_SHOWN_NAMES]
        )
        raise FilesError(
            f"`land files`: {len(changed)} files have changed since they were landed in {table}: "
            f"{shown}. Nothing was landed. Fix: give each export a name of its own, such as one "
            "with its date. Records of a change table that two files have count once."
        )
    return known.keys() & sizes.keys()


def _read(
    session: SparkSession, kind: str, files: list[str], options: Mapping[str, str]
) -> DataFrame:
    """The rows of all files, of CSV as text, with what identifies their file."""
    reader = session.read.format(kind).options(**{**_OPTIONS[kind], **options})
    if kind == "csv":
        names = reader.load(files[:1]).columns
        reader = reader.schema(", ".join(f"{quoted(name)} string" for name in names))
    return reader.load(files).withColumns(
        {
            LANDED_FILE: F.col("_metadata.file_path"),
            LANDED_BYTES: F.col("_metadata.file_size"),
        }
    )


def _types(
    rows: DataFrame,
    kind: str,
    columns: Mapping[str, str],
    declared: Mapping[str, str],
    has: Mapping[str, str],
) -> dict[str, str]:
    """Column -> the type to land it with: the table's, the declared one, else what it holds."""
    of_table = _lower(has)
    given = _lower(declared)
    unknown = given.keys() - _lower(columns).keys()
    if unknown:
        raise FilesError(
            f"`land files`: --type names {', '.join(sorted(unknown))}. The files have the columns "
            f"{', '.join(columns)}. Fix: correct the name."
        )
    for name, wanted in given.items():
        if of_table.get(name, wanted) != wanted:
            raise FilesError(
                f"`land files`: --type {name}={wanted}: the table has this column as "
                f"{of_table[name]}. Fix: leave --type out, or land into another table."
            )
    free = [name for name in columns if name.lower() not in {**of_table, **given}]
    found = _inferred(rows, free) if kind == "csv" and free else {}
    return {
        name: of_table.get(name.lower()) or given.get(name.lower()) or found.get(name, landed)
        for name, landed in columns.items()
    }


def _inferred(rows: DataFrame, names: Sequence[str]) -> dict[str, str]:
    """The type of each column of texts by what its values look like; all are read once."""
    measures: list[Column] = []
    for number, name in enumerate(names):
        value = F.col(quoted(name))
        is_text = name.lower().startswith(_TEXT_PREFIX)
        numeric = F.lit(not is_text)
        point = F.instr(value, ".")
        scale = F.when(point > 0, F.length(value) - point).otherwise(0)
        counts: dict[str, Column] = {
            "bigint": numeric & value.rlike(_INTEGER),
            "decimal": numeric & value.rlike(_DECIMAL),
            "date": value.rlike(_DATE) & value.try_cast("date").isNotNull(),
            "timestamp": value.rlike(_TIME) & value.try_cast("timestamp").isNotNull(),
            "boolean": F.lower(value).isin("true", "false"),
        }
        measures += [F.count(value).alias(f"filled{number}"), F.max(scale).alias(f"scale{number}")]
        measures.append(F.max(F.length(value)).alias(f"length{number}"))
        measures += [F.count_if(is_kind).alias(f"{of}{number}") for of, is_kind in counts.items()]
    row: Any = rows.agg(*measures).first()

    def type_of(number: int) -> str:
        filled = row[f"filled{number}"]
        kinds = ("bigint", "decimal", "date", "timestamp", "boolean")
        kind = next((of for of in kinds if filled and row[f"{of}{number}"] == filled), "string")
        if kind != "decimal":
            return kind
        # room for larger numbers of later files
        precision = 18 if row[f"length{number}"] < 15 else 38
        return f"decimal({precision},{row[f'scale{number}']})"

    return {name: type_of(number) for number, name in enumerate(names)}


def _typed(rows: DataFrame, columns: Mapping[str, str], wanted: Mapping[str, str]) -> DataFrame:
    """The rows with the wanted types.

    Raises:
        FilesError: a value is none of its column's type; names the file.
    """
    casts = [name for name, kind in columns.items() if kind != wanted[name]]
    failures = []
    for name in casts:
        value = F.col(quoted(name))
        cast = value.try_cast(wanted[name])
        is_lost = cast.isNull()
        if wanted[name].startswith("decimal"):
            # a cast would round
            is_lost |= ~cast.eqNullSafe(value.try_cast("decimal(38,18)")) & (
                value.try_cast("decimal(38,18)").isNotNull()
            )
        elif wanted[name] == "date" and columns[name] == "string":
            is_lost |= ~value.rlike(_DATE)
        failure = F.struct(F.col(LANDED_FILE), value.cast("string").alias("value"))
        failures.append(F.first(F.when(value.isNotNull() & is_lost, failure), True).alias(name))
    row = rows.agg(*failures).first() if failures else None
    for name, lost in zip(casts, row or (), strict=False):
        if lost is not None:
            raise FilesError(
                f"`land files`: column {name} is {wanted[name]}, and {unquote(lost[0])} has the "
                f"value {lost[1]!r} in it. Nothing was landed. Fix: correct the file, or land the "
                f"column as text into a new table: --type {name}=string."
            )
    return rows.select(
        *[F.col(quoted(name)).cast(kind).alias(name) for name, kind in wanted.items()],
        *LANDED_COLUMNS,
    )


def _lower(names: Any) -> Any:
    """The same with names in lower case, which Spark does not tell apart."""
    if isinstance(names, Mapping):
        return {name.lower(): value for name, value in names.items()}
    return {name.lower() for name in names}
