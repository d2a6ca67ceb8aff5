"""Public: the body of a `<table>_changes` model; user models import it from here."""

from __future__ import annotations

from dbt_afterimage.change_log.model import build_changes

__all__ = ["build_changes"]
