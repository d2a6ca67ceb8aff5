"""Settings of source tables, and what follows from them."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage import __version__
from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_function, macro_method
from dbt_afterimage.settings import (
    SYSTEMS,
    SettingsError,
    SourceSettings,
    moment_kind,
    parse_settings,
    positions,
)
from dbt_afterimage.settings.change_feed import (
    ENCODINGS,
    schema_encodings_of,
    unavailable_spellings,
)
from dbt_afterimage.settings.renaming import way_to_rename
from dbt_afterimage.settings.timestamps import is_timestamp

macro_function(is_timestamp, while_parsing=True)
macro_function(moment_kind)
macro_function(schema_encodings_of, while_parsing={})
macro_function(unavailable_spellings, while_parsing=[])
macro_function(way_to_rename, while_parsing="")


@macro_method(while_parsing="")
def installed_version(adapter: Any) -> str:
    """The version of this Python package."""
    return __version__


@macro_method(while_parsing={})
def settings(adapter: Any, source: Any) -> SourceSettings:
    """Validated settings of one source table, all defaults filled in.

    Args:
        source: the table's entry in dbt's graph (a source definition as a mapping).

    Returns:
        The settings by name, with ``declared_columns`` (name and data_type) of the entry's columns.

    Raises:
        DbtRuntimeError: a setting is missing, misspelt or not allowed; names table, key and fix.
    """
    try:
        return parse_settings(source)
    except SettingsError as error:
        raise DbtRuntimeError(str(error)) from error


@macro_method(while_parsing=[])
def tool_columns(adapter: Any, settings: Any, names: list[str]) -> list[str]:
    """Those of the columns of a raw table that the replication tool adds to the source's."""
    parsed = SYSTEMS[settings["system"]].model_construct(**settings)
    return [name for name in names if parsed.is_own_column(name)]


@macro_method(while_parsing=["any"])
def types_of_encoding(adapter: Any, encoding: str) -> list[str]:
    """Types that a column of an encoding can have, `any` for all.

    Args:
        encoding: how a change feed's JSON documents write a value.
    """
    return list(ENCODINGS[encoding])


@macro_method(while_parsing=[])
def registered_schemas(adapter: Any, location: str, table: str) -> list[dict[str, Any]]:
    """The schemas of a table's messages, as {id, is_avro, text, encodings}."""
    from dbt_afterimage.sources.field_encodings import field_encodings
    from dbt_afterimage.sources.qlik_messages.avro_form import AvroUnavailableError
    from dbt_afterimage.sources.qlik_messages.decode import check_avro
    from dbt_afterimage.sources.schema_registry import RegistryError, subject_schemas
    from dbt_afterimage.spark.session import active

    found = []
    with dbt_errors(RegistryError, AvroUnavailableError):
        schemas = subject_schemas(location)
        session = active()
        if session is not None and any(kind == "AVRO" for kind, _ in schemas.values()):
            check_avro(session, table)
    for number, (kind, text) in sorted(schemas.items()):
        encodings = field_encodings(kind, text)
        found.append(
            {"id": number, "is_avro": kind == "AVRO", "text": text, "encodings": encodings}
        )
    return found


@macro_method(while_parsing="")
def before_look_back_sql(adapter: Any, settings: Any, seq: str) -> str:
    """SQL: the greatest position that the look-back from a change_seq no longer covers, or ''."""
    return positions(settings).before_look_back_sql(seq)
