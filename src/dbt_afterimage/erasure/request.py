"""A user's request to erase: keys, and columns or whole records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings.suggestions import did_you_mean


class ErasureError(AfterimageError):
    """The requested erasure is not possible; nothing was erased."""


@dataclass(frozen=True)
class ErasureRequest:
    """An erasure of the data of some keys.

    Attributes:
        keys: each key as the user gave it.
        columns: columns to set to NULL; None = whole records.
        follow_key_changes: also erase the keys that the rows had before or got later.
    """

    keys: Sequence[str]
    columns: Sequence[str] | None
    follow_key_changes: bool = False


def parse_key(text: str, key: Sequence[str], source_table: str) -> tuple[str, ...]:
    """The values of a key, in the order of the key columns.

    Args:
        text: `13`, or `id=13`, or `id=13,region=EU`; a value may have commas and equals signs.

    Raises:
        ErasureError: the text does not name each key column once.
    """
    names = "|".join(re.escape(name) for name in sorted(key, key=len, reverse=True))
    places = list(re.finditer(rf"(?:^|,)\s*({names})=", text)) if key else []
    if len(key) == 1 and not (places and places[0].start() == 0):
        return (text,)
    ends = [place.start() for place in places[1:]] + [len(text)]
    values = (
        {place[1]: text[place.end() : end] for place, end in zip(places, ends, strict=True)}
        if places
        else {}
    )
    if sorted(values) != sorted(key) or len(places) != len(key) or places[0].start() != 0:
        example = ",".join(f"{name}=..." for name in key)
        raise ErasureError(
            f"`erase`: --key {text!r} is not a key of source table {source_table}, whose `key` is "
            f"[{', '.join(key)}]. Allowed: each key column once. Nothing was erased. "
            f"Fix: --key '{example}'."
        )
    return tuple(values[name] for name in key)


def check_columns(
    names: Sequence[str], data_columns: Sequence[str], key: Sequence[str], source_table: str
) -> tuple[str, ...]:
    """The columns to erase, as the change log spells them.

    Raises:
        ErasureError: one of them is a key column, or none of the log's data columns.
    """
    spelt = {name.lower(): name for name in data_columns}
    keys = {name.lower() for name in key}
    allowed = [name for name in data_columns if name.lower() not in keys]
    for name in names:
        if name.lower() in keys:
            raise ErasureError(
                f"`erase`: --columns names `{name}`, a key column of source table {source_table}; "
                f"it identifies rows. Allowed: {', '.join(allowed)}. Nothing was erased. "
                "Fix: leave it out, or erase whole records with --rows."
            )
        if name.lower() not in spelt:
            raise ErasureError(
                f"`erase`: --columns names `{name}`, and the change log of {source_table} has no "
                f"such column.{did_you_mean(name, allowed)} Allowed: {', '.join(allowed)}. "
                "Nothing was erased. Fix: correct the name."
            )
    return tuple(dict.fromkeys(spelt[name.lower()] for name in names))
