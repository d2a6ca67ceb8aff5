"""docs/guarantees.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_test_that_the_page_names_exists() -> None:
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    named = set(re.findall(r"test_\w+\.py", text))
    files = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) > 20
    assert named <= files
