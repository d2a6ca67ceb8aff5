"""Checks what sqlfluff cannot check in macro files: names, comments and whitespace.

Usage: check_macros.py [folder ...], by default macros and demo/macros.

To sqlfluff a macro file is empty. sqlfluff lints the SQL that macros render instead
(scripts/check_sql.sh). The rules for each file of the folders:

- `<name>.sql` defines one public macro, generic test or materialization, named `<name>`; an
  override of a dbt macro has the adapter's prefix (`spark__<name>`). All its other macros are
  private: their names start with `_`.
- `_<name>.sql` defines private macros only.
- A file starts with a comment that says what it is for.
- No name is defined twice.
- Macros call each other as `afterimage.<name>`: from a project that installs the package, dbt finds
  them by no other name.
- Such a call gives each argument that has no default, and no other than the macro's own: to Jinja
  one that is left out is an undefined value, which fails only where it is used.
- Lines have up to 160 columns, no tabs and no trailing whitespace.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from dbt_common.clients.jinja import get_environment
from jinja2 import nodes

LINE_LENGTH = 160
DEFINITION = re.compile(r"\{%-?\s*(?:macro|test|materialization)\s+([A-Za-z_0-9]+)")
KIND_AND_NAME = re.compile(r"\{%-?\s*(macro|test|materialization)\s+([A-Za-z_0-9]+)")
JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
COMMENT_OR_TEXT = re.compile(r"\{#.*?#\}|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
CALL = re.compile(r"(?<![\w.])(?<!macro )(?<!test )([A-Za-z_]\w*)\(")
ADAPTER_PREFIX = re.compile(r"^(?:spark|default)__")


def findings(name: str, text: str) -> Iterator[str]:
    """Yields the findings of one macro file, as `line <number>: <finding>` or `<finding>`.

    Args:
        name: the file's name without suffix.
        text: the file's text.
    """
    if not text.lstrip().startswith("{#"):
        yield "line 1: start the file with a comment that says what the file is for"
    public = [macro for macro in DEFINITION.findall(text) if not macro.startswith("_")]
    if name.startswith("_"):
        for macro in public:
            yield f"{macro} is public; move it to {macro}.sql, or start its name with `_`"
    elif [ADAPTER_PREFIX.sub("", macro) for macro in public] != [name]:
        yield f"defines {', '.join(public) or 'nothing'}, expected one public macro {name}"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "end the file with exactly one line break"
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LINE_LENGTH:
            yield f"line {number}: {len(line)} columns, the limit is {LINE_LENGTH}"
        if line != line.rstrip():
            yield f"line {number}: trailing whitespace"
        if "\t" in line:
            yield f"line {number}: tab"


def defined_twice(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the names that are defined more than once; with one, dbt cannot parse the project.

    Args:
        texts: the text of each macro file.
    """
    files: dict[str, list[str]] = {}
    for file, text in texts.items():
        for kind, macro in KIND_AND_NAME.findall(text):
            # a materialization and a macro may have one name: dbt calls the former by another
            name = f"{kind} {macro}" if kind == "materialization" else macro
            files.setdefault(name, []).append(file)
    for macro, places in files.items():
        if len(places) > 1:
            yield f"{macro} is defined more than once: {', '.join(places)}"


def called_plainly(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the calls of the project's own macros that do not name the package.

    Args:
        texts: the text of each macro file.
    """
    own = {macro for text in texts.values() for macro in DEFINITION.findall(text)}
    for file, text in texts.items():
        for tag in JINJA.findall(re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)):
            for macro in CALL.findall(COMMENT_OR_TEXT.sub("''", tag)):
                if macro in own:
                    yield f"{file}: {macro}( is called without the package: afterimage.{macro}("


def wrong_arguments(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the calls of the project's own macros that leave an argument out or give one too many.

    Args:
        texts: the text of each macro file.
    """
    trees = {file: get_environment(None, capture_macros=True).parse(t) for file, t in texts.items()}
    macros = {
        macro.name.removeprefix("dbt_macro__"): macro
        for tree in trees.values()
        for macro in tree.find_all(nodes.Macro)
    }
    for file, tree in trees.items():
        for call in tree.find_all(nodes.Call):
            called = call.node
            if not (
                isinstance(called, nodes.Getattr)
                and isinstance(called.node, nodes.Name)
                and called.node.name == "afterimage"
                and called.attr in macros
            ):
                continue
            macro = macros[called.attr]
            names = [argument.name for argument in macro.args]
            required = names[: len(names) - len(macro.defaults)]
            given = {*names[: len(call.args)], *(keyword.key for keyword in call.kwargs)}
            is_spread = call.dyn_args is not None or call.dyn_kwargs is not None
            missing = [] if is_spread else [name for name in required if name not in given]
            unknown = sorted(given - set(names))
            place = f"{file}: line {call.lineno}: afterimage.{called.attr}("
            if missing:
                yield f"{place} lacks {', '.join(missing)}"
            if unknown or len(call.args) > len(names):
                more = ", ".join(unknown) or "more"
                yield f"{place} gives {more} beyond {', '.join(names) or 'no arguments'}"


def main(arguments: list[str]) -> int:
    """Prints the findings of folders; returns the exit code: 1 if there are any, else 0."""
    folders = map(Path, arguments or ["macros", "demo/macros"])
    files = [file for folder in folders for file in sorted(folder.rglob("*.sql"))]
    texts = {str(file): file.read_text(encoding="utf-8") for file in files}
    found = [
        f"{file}: {finding}" for file in files for finding in findings(file.stem, texts[str(file)])
    ]
    found += [*defined_twice(texts), *called_plainly(texts), *wrong_arguments(texts)]
    print("\n".join([*found, f"macros: {len(files)} files, {len(found) or 'no'} findings"]))
    # Without any files, the folder must be wrong.
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
