"""The option `--key` of `add-table`, and the prompt for a key that is not sure."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import typer

from dbt_afterimage.cli.frame import UsageProblem
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings import did_you_mean

if TYPE_CHECKING:
    from dbt_afterimage.cli.commands.add_table.proposal import Proposal

NO_KEY = "-"


class KeyUnknownError(AfterimageError):
    """The key of a table is not sure, or it is given wrongly."""


@dataclass(frozen=True)
class KeyOptions:
    """Keys that the user gave: table name -> columns; the name is empty where there was none."""

    keys: Mapping[str, tuple[str, ...]]

    @classmethod
    def parse(cls, options: Sequence[str]) -> KeyOptions:
        """From `TABLE=COLUMN,...` or `COLUMN,...`; `-` in place of columns means no key."""
        keys: dict[str, tuple[str, ...]] = {}
        for option in options:
            table, given, columns = option.rpartition("=")
            name = table.strip().lower() if given else ""
            if name in keys:
                raise UsageProblem(f"--key {option}: this table has a key already. Fix: give one.")
            named = [part.strip() for part in columns.split(",")]
            keys[name] = () if named == [NO_KEY] else tuple(filter(None, named))
            if len(set(keys[name])) != len(keys[name]) or not any(named):
                raise UsageProblem(
                    f"--key {option}: got the columns {columns!r}; allowed: names of columns, each "
                    f"once, separated by commas, or {NO_KEY} for no key. Fix: correct them."
                )
        return cls(keys)

    def check(self, tables: Collection[str], unread: int = 0) -> None:
        """Stop at a key without its table, or of a table that is not added.

        Args:
            tables: names of those that are added.
            unread: how many others there are, which could not be read: a key may be theirs.
        """
        if "" in self.keys and len(tables) + unread != 1:
            raise UsageProblem(
                f"--key {','.join(self.keys['']) or NO_KEY}: {len(tables) + unread} tables are "
                "added. Fix: name the table, as in --key TABLE=COLUMN,..."
            )
        for name in self.keys:
            if name and name not in tables and not unread:
                raise UsageProblem(
                    f"--key {name}=...: no table of this call has this name."
                    f"{did_you_mean(name, list(tables))} Fix: correct the name."
                )

    def apply(self, proposal: Proposal) -> Proposal:
        """The proposal with the key that the user gave, or types at the prompt if it is not sure.

        Raises:
            KeyUnknownError: it is not sure and there is no terminal, or it names no column.
        """
        given = self.keys.get(proposal.table, self.keys.get(""))
        if given is not None:
            return _with_key(proposal, given)
        if proposal.key.is_sure:
            return proposal
        likely = ",".join(proposal.key.columns)
        if not sys.stdin.isatty():
            raise KeyUnknownError(
                f"{proposal.raw_name}: its key is not sure: {proposal.key.reason}. Fix: add --key "
                f"{proposal.table}={likely or 'COLUMN,...'}, or --key {proposal.table}={NO_KEY} "
                "for a table without a key."
            )
        typer.echo(f"{proposal.raw_name}: {proposal.key.reason}.")
        complete: Proposal = typer.prompt(
            "  Key (columns, separated by commas; - for none)",
            default=likely,
            value_proc=partial(_with_typed_key, proposal),
        )
        return complete


def _with_typed_key(proposal: Proposal, typed: str) -> Proposal:
    try:
        (given,) = KeyOptions.parse([typed]).keys.values()
        return _with_key(proposal, given)
    except AfterimageError as error:
        # click shows it and prompts again
        raise typer.BadParameter(str(error)) from error


def _with_key(proposal: Proposal, given: Sequence[str]) -> Proposal:
    by_name = {name.lower(): name for name in proposal.key_columns}
    for name in given:
        if name.lower() not in by_name:
            raise KeyUnknownError(
                f"{proposal.raw_name}: --key names {name!r}, which is "
                f"none of its columns: {', '.join(by_name.values())}."
                f"{did_you_mean(name, list(by_name.values()))} Fix: correct the name."
            )
    columns = tuple(by_name[name.lower()] for name in given)
    return replace(proposal, key=replace(proposal.key, columns=columns, reason="as given"))
