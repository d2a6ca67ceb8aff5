"""Public: the body of a model that decodes Qlik messages; user models import it from here."""

from __future__ import annotations

from dbt_afterimage.sources.qlik_messages.messages_model import build_messages

__all__ = ["build_messages"]
