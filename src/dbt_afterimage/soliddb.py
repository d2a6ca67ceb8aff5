"""Public: the body of a model that decodes a SYS_LOG; user models import it from here."""

from __future__ import annotations

from dbt_afterimage.sources.soliddb.log_model import build_log

__all__ = ["build_log"]
