"""The settings of a source table: declared once, in the `meta` of its YAML entry, and checked here.

Every error names the table, the setting, what it got, what is allowed, and the fix.
"""

from __future__ import annotations

from dbt_afterimage.settings.base import OPTIONAL_COLUMNS, SourceSettings
from dbt_afterimage.settings.parse import SettingsError, parse_settings
from dbt_afterimage.settings.suggestions import did_you_mean
from dbt_afterimage.settings.systems import SYSTEMS, has_own_loads, moment_kind, positions

__all__ = [
    "OPTIONAL_COLUMNS",
    "SYSTEMS",
    "SettingsError",
    "SourceSettings",
    "did_you_mean",
    "has_own_loads",
    "moment_kind",
    "parse_settings",
    "positions",
]
