"""Checks what sqlfluff cannot see in macro files: their names, their first lines, their whitespace.

Usage: check_macros.py [folder], by default macros.

sqlfluff reads a macro file as empty text: it lints what models make of the macros instead
(scripts/check_sql.sh).
Here, for each file of the folder:

- `<name>.sql` defines one public macro, generic test or materialization, called `<name>`; an
  override of dbt's own has the adapter's prefix (`spark__<name>`). Its other macros are private.
- `_<name>.sql` defines private macros only, whose names start with `_`.
- The file starts with a comment that says what it is for.
- No name is defined twice.
- Lines have at most 140 columns, no tabs and no white space at their end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LINE_LENGTH = 140
DEFINITION = re.compile(r"\{%-?\s*(?:macro|test|materialization)\s+([A-Za-z_0-9]+)")
ADAPTER_PREFIX = re.compile(r"^(?:spark|default)__")


def findings(name: str, text: str) -> Iterator[str]:
    """Yields what is wrong with one macro file, each as `line <number>: <what>` or `<what>`.

    Args:
        name: the file's name without its suffix.
        text: the file's text.
    """
    if not text.lstrip().startswith("{#"):
        yield "line 1: a comment that says what the file is for comes first"
    public = [macro for macro in DEFINITION.findall(text) if not macro.startswith("_")]
    if name.startswith("_"):
        for macro in public:
            yield f"{macro} is public, and belongs into {macro}.sql; private names start with `_`"
    elif [ADAPTER_PREFIX.sub("", macro) for macro in public] != [name]:
        yield f"defines {', '.join(public) or 'nothing'} where one public macro {name} is expected"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "the last line ends with one line break"
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LINE_LENGTH:
            yield f"line {number}: {len(line)} columns, more than {LINE_LENGTH}"
        if line != line.rstrip():
            yield f"line {number}: white space at the end"
        if "\t" in line:
            yield f"line {number}: tab"


def defined_twice(texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the names that several files define: with one of them, dbt parses nothing at all.

    Args:
        texts: the text of each macro file.
    """
    files: dict[str, list[str]] = {}
    for file, text in texts.items():
        for macro in DEFINITION.findall(text):
            files.setdefault(macro, []).append(file)
    for macro, places in files.items():
        if len(places) > 1:
            yield f"{macro} is defined more than once: {', '.join(places)}"


def main(arguments: list[str]) -> int:
    """Prints what is wrong in a folder; returns the exit code: 1 if anything is, else 0."""
    folder = Path(arguments[0] if arguments else "macros")
    files = sorted(folder.rglob("*.sql"))
    texts = {str(file): file.read_text(encoding="utf-8") for file in files}
    found = [
        f"{file}: {finding}" for file in files for finding in findings(file.stem, texts[str(file)])
    ]
    found += defined_twice(texts)
    print("\n".join([*found, f"macros: {len(files)} files, {len(found) or 'no'} findings"]))
    # A check of nothing is a wrong folder.
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
