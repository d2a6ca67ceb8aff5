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
