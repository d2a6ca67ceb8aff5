"""Field changes of one table: one row per column that an update or a full load really changed.

Readings of the rule that a reader may want to know
---------------------------------------------------
- An update with a before image is compared with it (`before_image`); an update without one with the
  version that it closed (`previous_version`). An update that opened no version changed nothing
  tracked, and of its untracked columns the history keeps only the last value: it gives no rows.
- With a before image all data columns are compared, tracked or not, key columns included, where
  both sides are known. With the previous version only tracked columns are: of an ignored one,
  history does not say which update changed it.
- A row of a full load that shows other values than the open version is a change too, whose time
  between the two is not known. Only history shows it, so only where before images are off.
- With `inserts_and_deletes` an insert gives a row per known column that is not NULL (`old_value`
  and `derived_from` NULL), a delete a row per known column of the deleted row that is not NULL
  (`new_value` NULL), taken from its before image, else from the version that it closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.oracle.history import (
    Image,
    Key,
    LogRow,
    Row,
    TableOptions,
    Version,
    as_text,
    in_log_order,
    key_of,
    known_before,
    known_image,
    known_values,
    previous_key_of,
    same_value,
)


@dataclass(frozen=True)
class FieldChange:
    """One changed column of one change. Keys are tuples in the order of the key columns.

    `changed_at` is the change's own; of a `previous_version` it is where the next version begins.
    """

    key: Key
    previous_key: Key | None
    change_seq: str
    changed_at: datetime | None
    transaction_id: str | None
    change_oper: str
    column_name: str
    old_value: str | None
    new_value: str | None
    derived_from: str | None

    def as_row(self, key: Sequence[str]) -> Row:
        """Return the row of the table; `key` names the key columns."""
        row = {name: value for name, value in vars(self).items() if name != "key"}
        if self.previous_key is not None:
            row["previous_key"] = dict(zip(key, self.previous_key, strict=True))
        return {**dict(zip(key, self.key, strict=True)), **row}


def build_field_changes(
    log: Iterable[LogRow],
    history: Iterable[Version],
    options: TableOptions,
    *,
    inserts_and_deletes: bool = False,
) -> list[FieldChange]:
    """Return the field changes in log order, within a change in table column order.

    `history` is what `build_history` returns for the same log.
    """
    history = list(history)
    closed_at = {
        (key_of(version.data, options), version.valid_to_seq): version for version in history
    }
    opened_at = {
        (key_of(version.data, options), version.valid_from_seq): version for version in history
    }
    result = []
    derived_from: str | None
    counted = "IUD" if inserts_and_deletes else "U"
    if not options.before_images:
        counted += "L"
    for row in in_log_order(log, options):
        if row.data is None or row.change_oper not in counted:
            continue
        key = key_of(row.data, options)
        opened = opened_at.get((key, row.change_seq))
        closed = closed_at.get((key, row.change_seq))
        if row.change_oper == "U" and (
            options.before_images or opened is None or opened.opened_by != "U"
        ):
            closed = None
        if row.change_oper == "L":
            if opened is None or opened.opened_by != "L" or closed is None:
                continue
            old, derived_from = known_values(closed), "previous_version"
        else:
            old, derived_from = _old_image(row, closed)
        changed_at = row.changed_at
        if derived_from == "previous_version" and opened is not None:
            changed_at = opened.valid_from
        new = {} if row.change_oper == "D" else known_image(row, options)
        columns = options.tracked if derived_from == "previous_version" else options.columns
        for column in columns:
            if row.change_oper in "UL" and not (column in old and column in new):
                continue
            if same_value(old.get(column), new.get(column)):
                continue
            result.append(
                FieldChange(
                    key=key,
                    previous_key=previous_key_of(row, options),
                    change_seq=row.change_seq,
                    changed_at=changed_at,
                    transaction_id=row.transaction_id,
                    change_oper=row.change_oper,
                    column_name=column,
                    old_value=as_text(old.get(column)),
                    new_value=as_text(new.get(column)),
                    derived_from=derived_from,
                )
            )
    return result


def _old_image(row: LogRow, closed: Version | None) -> tuple[Image, str | None]:
    """Return what the row was before the change, known columns only, and where that is from.

    `closed`: the version of the key that ends at the change.
    """
    if row.change_oper == "I":
        return {}, None
    if row.before is not None:
        return known_before(row), "before_image"
    if closed is not None and closed.closed_by == row.change_oper:
        return known_values(closed), "previous_version"
    return {}, None
