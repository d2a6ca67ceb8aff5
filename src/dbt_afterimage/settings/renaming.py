"""How a user can rename a data column whose name a table of ours needs."""

from __future__ import annotations

from dbt_afterimage.settings.base import SourceSettings


def way_to_rename(settings: SourceSettings) -> str:
    """The fix, as a sentence for an error.

    Where a raw table holds the changes of all tables, no view over it can rename a column.
    """
    system = settings.get("system")
    if system == "qlik_messages" or settings.get("json_text") is not None:
        return (
            "let the replication tool rename the column: Qlik Replicate by a transformation, "
            "Kafka Connect by ReplaceField."
        )
    if system == "soliddb":
        return "rename the column at the server."
    return (
        "put a view over the table that renames the column and keeps the order of the columns, "
        "and declare the view as the source table."
    )
