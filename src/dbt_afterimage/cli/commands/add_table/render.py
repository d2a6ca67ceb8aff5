"""Turns a proposal into the files of a table; the templates are in `templates/`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from dbt_afterimage.cli.commands.add_table.proposal import Proposal
from dbt_afterimage.cli.support.templates import rendered
from dbt_afterimage.errors import AfterimageError

# What sqlfluff and yamllint of this project allow.
_SQL_WIDTH = 80
_YAML_WIDTH = 110


# An argument in Jinja or Python: texts without quotes and backslashes, and calls with such texts.
_TEXT = r"""(?:'[^'\\\n]*'|"[^"\\\n]*")"""
_ARGUMENT = re.compile(rf"(?:\w+=)?(?:{_TEXT}|[\w.]+\({_TEXT}(?:, {_TEXT})*\))")
# dbt renders YAML too
_JINJA = re.compile(r"\{[{%#]")


class UnsafeNameError(AfterimageError):
    """A name of the raw schema, or a value of it, would be code in a file of the project."""


@dataclass(frozen=True)
class Layout:
    """Where a project has its files.

    Attributes:
        models: folder of SQL models, such as `models`.
        python: folder of Python models; the same folder in most projects.
        namespace: prefix of macros and tests: `afterimage.`, or empty in a clone of afterimage.
    """

    models: str = "models"
    python: str = "models"
    namespace: str = "afterimage."


def files(proposal: Proposal, layout: Layout) -> dict[str, str]:
    """The files of a table: path in the project -> text.

    Raises:
        UnsafeNameError: a name or a value has characters that would be code in one of them.
    """
    shared = proposal.shared_model
    for argument in (*proposal.staging_call[1:], *(shared.arguments if shared else ())):
        if _JINJA.search(argument) or not _ARGUMENT.fullmatch(argument):
            raise _unsafe(proposal, argument)
    filters = {"flow": flow, "text": text, "settings": settings, "needs_quotes": needs_quotes}
    template = partial(
        rendered,
        "dbt_afterimage.cli.commands.add_table",
        filters=filters,
        p=proposal,
        ns=layout.namespace,
    )
    call = partial(_call, layout.namespace)
    table, source = proposal.table, proposal.source
    staging = f"{layout.models}/staging/{source}"
    marts = f"{layout.models}/marts/{source}"
    found = {
        f"{staging}/_{table}__sources.yml": template("sources.yml"),
        f"{staging}/_{table}__models.yml": template("staging_models.yml"),
        f"{staging}/{proposal.staging}.sql": call(*proposal.staging_call),
        f"{layout.python}/changes/{source}/{table}_changes.py": template("changes.py"),
        f"{marts}/_{table}__models.yml": template("marts_models.yml"),
    }
    changes, history = f"ref('{table}_changes')", f"ref('{table}_history')"
    if proposal.key.columns:
        found[f"{marts}/{table}_history.sql"] = call("history", changes)
        found[f"{marts}/{table}_current.sql"] = call("current", history)
    if proposal.has_before_images or proposal.key.columns:
        derived = [] if proposal.has_before_images else [f"history={history}"]
        found[f"{marts}/{table}_field_changes.sql"] = call("field_changes", changes, *derived)
    of_all = f"_{source}__{proposal.system}"
    if proposal.shared_tables:
        found[f"{staging}/{of_all}__sources.yml"] = template("shared_sources.yml")
    if shared:
        python = f"{layout.python}/staging/{source}"
        found[f"{python}/{shared.name}.py"] = template("shared_model.py")
        found[f"{python}/{of_all}__models.yml"] = template("shared_models.yml")
    for path, written in found.items():
        for line in written.splitlines():
            if not path.endswith(".sql") and _JINJA.search(line):
                raise _unsafe(proposal, line.strip())
    return found


def _unsafe(proposal: Proposal, found: str) -> UnsafeNameError:
    return UnsafeNameError(
        f"{proposal.raw_name}: dbt or Python would run a part of a name or "
        f"value as code: {found!r}. Allowed: names without quotation marks, backslashes, line "
        "breaks, {{, {% and {#. Nothing was written for this table. Fix: create a view with plain "
        "names over the raw table, and add the view."
    )


def _call(namespace: str, macro: str, *arguments: str) -> str:
    """A model of one macro call, wrapped where the line would be too long."""
    line = f"{{{{ {namespace}{macro}({', '.join(arguments)}) }}}}"
    if len(line) <= _SQL_WIDTH:
        return f"{line}\n"
    listed = ",\n".join(f"    {argument}" for argument in arguments)
    return f"{{{{ {namespace}{macro}(\n{listed}\n) }}}}\n"


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    dumped: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return dumped.removesuffix("\n...\n").strip()


def text(value: str, indent: int) -> str:
    """A text as YAML behind a key that is indented so far: on one line, or folded."""
    value = " ".join(value.split())
    line = flow(value)
    if len(line) + indent <= _YAML_WIDTH - 20:
        return line
    wrapped = textwrap.wrap(value, _YAML_WIDTH - indent, break_long_words=False)
    return ">-\n" + "\n".join(" " * (indent + 2) + part for part in wrapped)


def settings(value: Mapping[str, Any], indent: int) -> str:
    """Settings as YAML behind `afterimage:`, which is indented so far: one setting a line."""
    line = flow(dict(value))
    if len(value) == 1 and len(line) + indent <= _YAML_WIDTH - 20:
        return f" {line}"
    lines = []
    for name, setting in value.items():
        one = f"{' ' * (indent + 2)}{name}: {flow(setting)}"
        if len(one) <= _YAML_WIDTH or not isinstance(setting, list):
            lines.append(one)
        else:
            lines.append(f"{' ' * (indent + 2)}{name}:")
            lines += [f"{' ' * (indent + 4)}- {flow(item)}" for item in setting]
    return "\n" + "\n".join(lines)


def needs_quotes(name: str) -> bool:
    """Whether dbt must quote a name."""
    return re.fullmatch(r"\w+", name, re.ASCII) is None
