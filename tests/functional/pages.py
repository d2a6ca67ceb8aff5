"""Text and code of the project's pages, so that tests run what a page shows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def section_of(document: str, heading: str) -> str:
    """A section of a page, up to the next heading of its level: `"docs/x.md"`, `"## Set it up"`."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return text.split(f"\n{heading}\n")[1].split("\n## ")[0]


def python_of(document: str, heading: str) -> list[str]:
    """The blocks of Python in a section."""
    return re.findall(r"^```python\n(.*?)^```", section_of(document, heading), re.S | re.M)


def commands_of(document: str) -> list[tuple[str, str]]:
    """The commands that a page gives a reader, each with what the page says that it prints."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.S | re.M)
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.M)
    return [(command, printed) for command, printed in found]


def tables_of(document: str) -> list[list[list[str]]]:
    """The rows of the tables of a page, without their heads."""
    text = (ROOT / document).read_text(encoding="utf-8")
    tables = re.findall(r"^\|.*\n\|[-|: ]+\|\n((?:\|.*\n)+)", text, re.M)
    return [
        [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]
        for table in tables
    ]
