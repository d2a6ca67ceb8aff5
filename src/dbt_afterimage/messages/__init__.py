"""Qlik messages, as Kafka and similar brokers deliver them: their forms, schemas and full loads.

Sources of all facts, unless a comment says otherwise: the vendor's page "Metadata and data
messages", and messages that were captured.
"""

from __future__ import annotations

from dbt_afterimage.messages.model import build_messages

__all__ = ["build_messages"]
