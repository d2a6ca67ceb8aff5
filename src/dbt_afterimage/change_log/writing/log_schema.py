"""The change log as a table: whether a batch fits into it, and what makes it fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from dbt_afterimage.change_log.contract import (
    LOG_COLUMNS,
    changed_roles,
    data_columns,
    optional_columns,
)
from dbt_afterimage.log_rows.columns import column_named
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import SourceSettings, did_you_mean
from dbt_afterimage.storage.progress import ISO_TIMESTAMP
from dbt_afterimage.storage.schema_contract import (
    Alterations,
    Origin,
    SchemaContractError,
    TargetSchema,
)
from dbt_afterimage.storage.schema_evolution import (
    alter_table,
    check_table,
    column_types,
    table_properties,
)

HASHED_AFTER = "afterimage.hashed_after"
"""Property of a change log, a time: only rows recorded after it have hashes of the present form.

Empty where all have. It is set when an earlier version's log is first written to (decision 55).
"""

_LISTS_OF_NAMES = ("declared_changed_columns", "known_columns", "before_known_columns")


def log_origin(context: RunContext) -> Origin:
    """The origin of a change log. It holds every change, whichever columns are tracked."""
    return Origin(context.settings["key"])


def log_properties(context: RunContext) -> dict[str, str]:
    """The table properties of a new change log."""
    return {**log_origin(context).properties(), HASHED_AFTER: ""}


def evolve_log_schema(session: SparkSession, context: RunContext, staged: DataFrame) -> str | None:
    """Alter an existing log so that rows of ``staged`` can be appended; metadata only.

    It comes before anything reads the log: Spark refuses a plan whose table was altered meanwhile.
    A preview only checks the log, see `united`.

    Returns:
        Rows recorded up to this time, ISO text in UTC, have a `record_hash` of an earlier form,
        which says nothing about their content. None where no row has.

    Raises:
        SchemaContractError: the log cannot take them. Nothing was altered.
    """
    settings = context.settings
    types = column_types(staged.schema)
    data = data_columns(staged.columns, settings["optional_columns"])
    optional = optional_columns(staged.columns, settings["optional_columns"])
    is_there = session.catalog.tableExists(context.log)
    log = session.table(context.log).schema if is_there else StructType()
    kept = data_columns_of_log(log.names, settings)
    _check_names(context, "key", settings["key"], data)
    # the log keeps a column that the source has no longer
    known = list(dict.fromkeys([*data, *kept]))
    _check_names(context, "track", settings["track"], known)
    _check_names(context, "ignore", settings["ignore"], known)
    # until a rebuild has replaced the table, the old one keeps its own origin
    if context.rebuild_changes or not is_there:
        return None
    changes = check_table(
        session,
        TargetSchema(
            table=context.log,
            source_table=settings["source_table"],
            upstream="staging",
            origin=log_origin(context),
            own=[*LOG_COLUMNS, "before"],
            data={name: types[name] for name in [*data, *optional]},
            copies={"before": data},
            rebuild_hint=_rebuild_hint(context),
            retype="give the column its old type as `data_type` in the source's `columns`",
        ),
    )
    _check_roles(context, log)
    _alter(session, context, context.log, changes)
    if session.catalog.tableExists(context.rejected):
        has = session.table(context.rejected).columns
        added = {name: kind for name, kind in optional.items() if name not in has}
        _alter(session, context, context.rejected, Alterations(added))
    return _hashed_after(session, context)


def _hashed_after(session: SparkSession, context: RunContext) -> str | None:
    """Reads the log's property; a log without it is one of an earlier version."""
    found = table_properties(session, context.log).get(HASHED_AFTER)
    if found is None:
        last = F.date_format(F.max("recorded_at"), ISO_TIMESTAMP)
        row = session.table(context.log).agg(last).first()
        found = (row[0] if row else None) or ""
        _alter(session, context, context.log, Alterations(properties={HASHED_AFTER: found}))
    return found or None


def _alter(session: SparkSession, context: RunContext, table: str, changes: Alterations) -> None:
    if not context.is_preview:
        alter_table(session, table, changes, context.file_format)


def _own_columns(settings: SourceSettings) -> set[str]:
    """Columns of a change log that are not data columns."""
    return {*LOG_COLUMNS, *settings["optional_columns"], "before"}


def data_columns_of_log(columns: Collection[str], settings: SourceSettings) -> list[str]:
    """The data columns among the columns of a change log, in their order."""
    own = _own_columns(settings)
    return [name for name in columns if name not in own]


def _check_names(
    context: RunContext, setting: str, names: Sequence[str], allowed: Sequence[str]
) -> None:
    """Every column named by a setting must exist, with the same case: marts compare names."""
    for column in names:
        if column not in allowed:
            raise SchemaContractError(
                f"{context.log}: the `{setting}` of source table "
                f"{context.settings['source_table']} names `{column}`, which is none of its data "
                f"columns: {', '.join(allowed)}."
                f"{did_you_mean(column, allowed)} Nothing was written. Fix: correct the name; "
                "where the source renamed the column, put a view over the change table that gives "
                "it its old name."
            )


def _check_roles(context: RunContext, log: StructType) -> None:
    """Metadata in the log is metadata of the source table, and its data columns are not."""
    settings, before = context.settings, log["before"].dataType
    assert isinstance(before, StructType)
    for column in changed_roles(log.names, before.names, settings["optional_columns"]):
        role, other_role = "metadata of the change", "a data column"
        if column in settings["optional_columns"]:
            role, other_role = other_role, role
        raise SchemaContractError(
            f"{context.log}: its column `{column}` is {role}, and by the settings of source table "
            f"{settings['source_table']} it would be {other_role}. Nothing was written. Fix: "
            "restore the setting, such as `header_columns`, or "
            f"{_rebuild_hint(context)}."
        )


def _rebuild_hint(context: RunContext) -> str:
    model = context.selected_as or context.model
    return f"rebuild the log: dbt run --vars '{{rebuild_changes: true}}' --select {model}+"


def conformed(rows: DataFrame, log: StructType, settings: SourceSettings) -> DataFrame:
    """The rows with the columns and types of the log.

    A data column that the source has no longer is unknown in them, so that its last value stays.
    One that changed its letters is named as the log names it, also where names are values.
    """
    # the same columns in the same order
    if [*column_types(rows.schema).items()] == [*column_types(log).items()]:
        return rows
    given = {field.name.lower() for field in rows.schema.fields}
    rows = _with_names_of(log, rows)
    own = _own_columns(settings)
    if any(name not in own and name.lower() not in given for name in log.names):
        known = F.array(*[F.lit(name) for name in rows.columns if name not in own])
        is_image = F.col("change_oper").isin("I", "U", "L") & F.col("load_rows").isNull()
        rows = rows.withColumns(
            {
                "known_columns": F.when(is_image, F.coalesce("known_columns", known)).otherwise(
                    F.col("known_columns")
                ),
                "before_known_columns": F.when(
                    F.col("before").isNotNull(), F.coalesce("before_known_columns", known)
                ),
            }
        )
    return rows.select(*_conformed_columns(rows.schema, log))


def united(log: DataFrame, rows: DataFrame, settings: SourceSettings) -> DataFrame:
    """A log with rows that were not appended, as if it had been altered for them."""
    wanted = log.limit(0).unionByName(rows.limit(0), allowMissingColumns=True).schema
    altered = log.select(*_conformed_columns(log.schema, wanted))
    return altered.unionByName(conformed(rows, wanted, settings))


def _with_names_of(log: StructType, rows: DataFrame) -> DataFrame:
    logged = {field.name.lower(): field.name for field in log.fields}
    names = {name: logged.get(name.lower(), name) for name in rows.columns}
    renamed = {name: new for name, new in names.items() if name != new}
    if not renamed:
        return rows
    rows = rows.withColumnsRenamed(renamed)
    new_names = F.create_map(*[F.lit(name) for pair in renamed.items() for name in pair])

    def translated(column: str) -> Column:
        return F.transform(column, lambda name: F.coalesce(F.try_element_at(new_names, name), name))

    return rows.withColumns({column: translated(column) for column in _LISTS_OF_NAMES})


def _conformed_columns(
    given: StructType, wanted: StructType, of: Callable[[str], Column] = column_named
) -> list[Column]:
    """The columns of ``wanted``, taken from ``given``, whose columns ``of`` gives by name."""
    fields = {field.name.lower(): field for field in given.fields}
    return [
        _conformed_column(fields.get(field.name.lower()), field, of).alias(field.name)
        for field in wanted.fields
    ]


def _conformed_column(
    given: StructField | None, wanted: StructField, of: Callable[[str], Column]
) -> Column:
    if given is None:
        return F.lit(None).cast(wanted.dataType)
    column = of(given.name)
    if given.dataType.simpleString() == wanted.dataType.simpleString():
        return column
    if isinstance(given.dataType, StructType) and isinstance(wanted.dataType, StructType):
        fields = _conformed_columns(given.dataType, wanted.dataType, column.__getitem__)
        return F.when(column.isNotNull(), F.struct(*fields))
    return column.cast(wanted.dataType)
