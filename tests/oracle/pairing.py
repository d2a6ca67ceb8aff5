"""Change log of one table from its staged contract rows: deduplicate, pair, record loads.

`StagedRow` is one row of a staging model, with the contract's columns and the data columns in
`data`. `pair` sorts every row into one of: the log, rejected, pending, duplicates, no change.

Steps
-----
1. `N` rows are counted, rows that staging rejected are rejected.
2. A NULL in the key rejects (`null_key`), whatever else is wrong: it is the first of the reasons.
   This concerns I, U, B, D and L; a record whose operation is not one of these has no key to judge.
3. Deduplicate by identity: (change_seq, key, change_oper), for an `L` (load_id, key), for a `T`
   change_seq. The copy already recorded stays, else the one with the smallest record_hash. Others
   with the same record_hash are duplicates, with another one `conflicting_duplicate`.
4. `U` joins the `B` of its change_seq and key. One `U` and one `B` that remain of a change_seq are
   a key change. Several that remain, of both kinds, are `ambiguous_pair`.
   A `U` or `B` whose partner is missing is pending until the look-back has passed it; then the `U`
   goes into the log without a before image and the `B` is `orphan_before_image`.
   Neither is ever pending where the record says that no partner can follow it.
   Where updates to a NULL key were rejected, as many before images of their change_seq have lost
   their partner for good: if no more are left without one, they are `orphan_before_image`.
   A record that carries its own before image needs no partner. With `before_images` off an update
   needs none, and a `B` is `orphan_before_image` at once.
5. Each load is recorded whole, with a marker row that counts its accepted rows. A first load
   without a position gets zeros.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from tests.oracle.history import Key, LogRow, Row


@dataclass(frozen=True)
class StagedRow:
    """One contract row. `record_hash` identifies the content of the raw record."""

    change_seq: str | None
    change_oper: str | None
    data: Row
    record_hash: int
    changed_at: datetime | None = None
    transaction_id: str | None = None
    known_columns: AbstractSet[str] | None = None
    before: Row | None = None
    truncate_scope: Mapping[str, str | None] | None = None
    load_id: str | None = None
    reject_reason: str | None = None
    partner_may_follow: bool = True


@dataclass(frozen=True)
class Load:
    """A full load that is complete; an empty one shows only here.

    `position`: its change_seq; None is allowed for the first load of a table only, since the place
    of a later one depends on when it was recorded.
    """

    load_id: str
    position: str | None = None
    loaded_at: datetime | None = None


@dataclass
class Paired:
    """Where every staged row went; `rejected` holds (row, reason)."""

    log: list[LogRow] = field(default_factory=list)
    rejected: list[tuple[StagedRow, str]] = field(default_factory=list)
    pending: list[StagedRow] = field(default_factory=list)
    duplicates: int = 0
    not_changes: int = 0
    updates_without_before: int = 0


def pair(
    staged: Iterable[StagedRow],
    key: Sequence[str],
    *,
    before_images: bool = True,
    pending_from: str | None = None,
    loads: Sequence[Load] = (),
    recorded: Iterable[StagedRow] = (),
    change_seq_width: int = 35,
) -> Paired:
    """Return the log rows, rejected and pending rows of one table.

    `pending_from`: the look-back reaches down to this change_seq; an update or before image at or
    above it waits for its partner. None = the look-back has passed everything.
    `loads`: the complete loads in the order in which they are recorded; loads that only their rows
    name follow, positioned by these rows.
    `recorded`: rows that earlier batches put into the log. They keep their identities and are not
    returned again; a load that is recorded is not read again.
    """
    result = Paired()
    recorded = list(recorded)
    recorded_loads = {row.load_id for row in recorded if row.change_oper == "L"}
    fit = [row for row in _judge(staged, key, result) if not _is_of(row, recorded_loads)]
    accepted = _deduplicate(fit, recorded, key, result)
    changes = [row for row in accepted if row.change_oper in ("I", "D", "T")]
    result.log.extend(_log_row(row, before=row.before) for row in changes)

    # distinct records, as their hashes are
    keyless: defaultdict[str, set[int]] = defaultdict(set)
    for row, reason in result.rejected:
        if row.change_oper == "U" and reason == "null_key" and row.change_seq is not None:
            keyless[row.change_seq].add(row.record_hash)

    # Updates and before images, one change_seq after the other
    groups: defaultdict[str, list[StagedRow]] = defaultdict(list)
    for row in accepted:
        if row.change_oper in ("U", "B"):
            groups[_seq(row)].append(row)
    for change_seq, rows in groups.items():
        is_pending = pending_from is not None and change_seq >= pending_from
        _pair_change_seq(
            rows, key, before_images, is_pending, result, keyless=len(keyless[change_seq])
        )

    load_rows = [row for row in accepted if row.change_oper == "L"]
    _record_loads(load_rows, loads, recorded_loads, change_seq_width, result)
    return result


def _judge(staged: Iterable[StagedRow], key: Sequence[str], result: Paired) -> list[StagedRow]:
    """Steps 1 and 2: return the rows that are fit to be recorded."""
    fit: list[StagedRow] = []
    rejected_hashes: set[int] = set()
    for row in staged:
        reason = row.reject_reason
        if row.change_oper in ("I", "U", "B", "D", "L") and None in _key(row, key):
            reason = "null_key"
        if reason is not None:
            if row.record_hash in rejected_hashes:
                result.duplicates += 1
            else:
                rejected_hashes.add(row.record_hash)
                result.rejected.append((row, reason))
        elif row.change_oper == "N":
            result.not_changes += 1
        else:
            fit.append(row)
    return fit


def _deduplicate(
    rows: Iterable[StagedRow], recorded: Iterable[StagedRow], key: Sequence[str], result: Paired
) -> list[StagedRow]:
    """Step 3: return one row per identity, without those whose identity is recorded."""
    kept = {_identity(row, key): row for row in recorded}
    already_recorded = set(kept)
    conflicts: set[tuple[Hashable, int]] = set()
    for row in sorted(rows, key=lambda row: row.record_hash):
        identity = _identity(row, key)
        first = kept.setdefault(identity, row)
        if first is row:
            continue
        if first.record_hash == row.record_hash or (identity, row.record_hash) in conflicts:
            result.duplicates += 1
        else:
            conflicts.add((identity, row.record_hash))
            result.rejected.append((row, "conflicting_duplicate"))
    return [row for identity, row in kept.items() if identity not in already_recorded]


def _pair_change_seq(
    rows: Iterable[StagedRow],
    key: Sequence[str],
    before_images: bool,
    is_pending: bool,
    result: Paired,
    *,
    keyless: int,
) -> None:
    """Step 4, for the updates and before images of one change_seq.

    `keyless`: how many updates to a NULL key it has, which were rejected.
    """
    updates = {_key(row, key): row for row in rows if row.change_oper == "U"}
    befores = {_key(row, key): row for row in rows if row.change_oper == "B"}

    for row_key, update in list(updates.items()):
        if update.before is not None or not before_images:
            result.log.append(_log_row(update, before=update.before))
            del updates[row_key]
        elif row_key in befores:
            result.log.append(_joined(update, befores.pop(row_key)))
            del updates[row_key]

    if not before_images:
        result.rejected.extend((row, "orphan_before_image") for row in befores.values())
    elif len(updates) == 1 and len(befores) == 1:
        result.log.append(_joined(*updates.values(), *befores.values()))
    elif updates and befores:
        remaining = [*updates.values(), *befores.values()]
        result.rejected.extend((row, "ambiguous_pair") for row in remaining)
    elif befores and len(befores) <= keyless:
        result.rejected.extend((row, "orphan_before_image") for row in befores.values())
    else:
        for row in [*updates.values(), *befores.values()]:
            if is_pending and row.partner_may_follow:
                result.pending.append(row)
            elif row.change_oper == "U":
                result.log.append(_log_row(row, before=None))
                result.updates_without_before += 1
            else:
                result.rejected.append((row, "orphan_before_image"))


def _record_loads(
    rows: Sequence[StagedRow],
    declared: Sequence[Load],
    recorded: AbstractSet[str | None],
    change_seq_width: int,
    result: Paired,
) -> None:
    """Step 5."""
    loads = {load.load_id: load for load in declared}
    for row in rows:
        load_id = row.load_id or ""
        loads.setdefault(load_id, Load(load_id, row.change_seq, row.changed_at))

    is_first = not recorded
    for load in loads.values():
        if load.load_id in recorded:
            continue
        position = load.position
        if position is None:
            if not is_first:
                raise ValueError(f"load {load.load_id!r} is not the first: give its position")
            position = "0" * change_seq_width
        is_first = False
        of_load = [row for row in rows if (row.load_id or "") == load.load_id]
        marker = LogRow(
            change_seq=position,
            change_oper="L",
            changed_at=load.loaded_at,
            load_id=load.load_id,
            load_rows=len(of_load),
        )
        result.log.append(marker)
        result.log.extend(
            LogRow(
                change_seq=position,
                change_oper="L",
                data=row.data,
                changed_at=load.loaded_at,
                transaction_id=row.transaction_id,
                known_columns=row.known_columns,
                load_id=load.load_id,
            )
            for row in of_load
        )


def _is_of(row: StagedRow, loads: AbstractSet[str | None]) -> bool:
    return row.change_oper == "L" and row.load_id in loads


def _joined(update: StagedRow, before: StagedRow) -> LogRow:
    return _log_row(update, before=before.data, before_known_columns=before.known_columns)


def _log_row(
    row: StagedRow, before: Row | None, before_known_columns: AbstractSet[str] | None = None
) -> LogRow:
    """Return the log row of a change; a before image of its own shares the row's known columns."""
    if before is not None and before is row.before:
        before_known_columns = row.known_columns
    return LogRow(
        change_seq=_seq(row),
        change_oper=row.change_oper or "",
        data=None if row.change_oper == "T" else row.data,
        changed_at=row.changed_at,
        transaction_id=row.transaction_id,
        known_columns=row.known_columns,
        before=before,
        before_known_columns=before_known_columns,
        truncate_scope=row.truncate_scope,
    )


def _identity(row: StagedRow, key: Sequence[str]) -> Hashable:
    if row.change_oper == "L":
        return ("L", row.load_id, _key(row, key))
    if row.change_oper == "T":
        return ("T", row.change_seq)
    return (row.change_oper, row.change_seq, _key(row, key))


def _key(row: StagedRow, key: Sequence[str]) -> Key:
    return tuple(row.data.get(column) for column in key)


def _seq(row: StagedRow) -> str:
    if row.change_seq is None:
        raise ValueError("staging must reject a change without change_seq")
    return row.change_seq
