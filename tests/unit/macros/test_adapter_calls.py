"""Each function that macros call on the adapter exists: dbt would notice only when it runs."""

from __future__ import annotations

import re
from pathlib import Path

from dbt_afterimage.dbt_spark import macro_api  # noqa: F401  registers the methods
from dbt_afterimage.dbt_spark.macro_api.registry import find_method

MACROS = Path(__file__).parents[3] / "macros"


def test_macros_call_functions_that_are_registered() -> None:
    texts = [file.read_text(encoding="utf-8") for file in MACROS.rglob("*.sql")]
    called = {name for text in texts for name in re.findall(r"adapter\.afterimage\.(\w+)", text)}
    assert "publish" in called
    for name in sorted(called):
        find_method(name)
