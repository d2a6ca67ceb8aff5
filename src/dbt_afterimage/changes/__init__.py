"""The change log: pairs raw change records, keeps the accepted ones, sets the others aside."""

from __future__ import annotations

from dbt_afterimage.changes.model import build_changes

__all__ = ["build_changes"]
