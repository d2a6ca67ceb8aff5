"""The adapter methods that macros call, and what each answers while dbt only parses."""

from __future__ import annotations

from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.settings import SettingsError, parse_settings


def afterimage_settings(self: Any, source: Any) -> dict[str, Any]:
    """Validated settings of one source table, all defaults filled in.

    Args:
        source: the table's entry in dbt's graph (a source definition as a mapping).

    Returns:
        The settings by name, with ``declared_columns`` (name and data_type) from the entry's columns.

    Raises:
        DbtRuntimeError: a setting is missing, misspelt or not allowed; names table, key and cure.
    """
    try:
        return parse_settings(source)
    except SettingsError as error:
        raise DbtRuntimeError(str(error)) from error


METHODS: dict[str, tuple[Any, Any]] = {
    "afterimage_settings": (afterimage_settings, {}),
}
