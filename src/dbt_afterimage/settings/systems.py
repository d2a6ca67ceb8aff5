"""The source systems by name, and what follows from the settings of a table."""

from __future__ import annotations

from typing import Literal

from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.settings.base import SourceSettings, TableSettings
from dbt_afterimage.settings.change_feed import ChangeFeedSettings
from dbt_afterimage.settings.openedge import OpenEdgeSettings
from dbt_afterimage.settings.qlik import QlikChangeTableSettings
from dbt_afterimage.settings.qlik_messages import QlikMessagesSettings
from dbt_afterimage.settings.soliddb import SolidDbSettings
from dbt_afterimage.settings.timestamps import is_timestamp

SYSTEMS: dict[str, type[TableSettings]] = {
    "qlik_change_table": QlikChangeTableSettings,
    "qlik_messages": QlikMessagesSettings,
    "openedge": OpenEdgeSettings,
    "soliddb": SolidDbSettings,
    "change_feed": ChangeFeedSettings,
}


def positions(settings: SourceSettings) -> ChangeSequence:
    """The positions of a table, from its validated settings."""
    return SYSTEMS[settings["system"]].positions(settings["look_back"])


def has_own_loads(settings: SourceSettings) -> bool:
    """Whether full loads come among the changes of a table, from its validated settings."""
    return SYSTEMS[settings["system"]].has_own_loads or bool(settings.get("load_id"))


def moment_kind(text: str, system: str | None = None) -> Literal["change_seq", "timestamp"] | None:
    """Which way to name a moment a text is: a position in the source's order, or a time in UTC.

    Args:
        system: whose positions are meant; None = those of any system.

    Returns:
        None when it is neither.
    """
    systems = SYSTEMS.values() if system is None else [SYSTEMS[system]]
    if any(model.positions.is_form_of(text) for model in systems):
        return "change_seq"
    return "timestamp" if is_timestamp(text) else None
