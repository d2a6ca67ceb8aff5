"""docs/orchestration.md and its examples: Python that compiles, and commands that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dbt_afterimage.cli import app
from dbt_afterimage.spark.connect import TOKEN_VARIABLE

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "deploy"
PAGE = (ROOT / "docs" / "orchestration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", re.findall(r"examples/deploy/(\w+\.py)", PAGE))
def test_an_example_is_python(name: str) -> None:
    ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))


def test_the_page_shows_the_settings_of_the_dag() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    dag = (EXAMPLES / "cosmos_dag.py").read_text(encoding="utf-8")
    lines = {line.strip() for line in dag.splitlines()}
    assert {line.strip() for line in shown.splitlines()} <= lines


def test_the_dag_sends_a_token_and_only_by_tls() -> None:
    dag = (EXAMPLES / "cosmos_dag.py").read_text(encoding="utf-8")
    assert re.search(r'"SPARK_REMOTE": "sc://[^"]*;use_ssl=true"', dag)
    assert f'"{TOKEN_VARIABLE}": "{{{{ conn.' in dag


def test_the_commands_of_cron_exist() -> None:
    operations = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    script = re.findall(r"```sh\n(#!/bin/sh.*?)```", operations, re.DOTALL)[0]
    (table,) = re.findall(r"```\n([\d*].*?)```", PAGE, re.DOTALL)
    group: Any = get_command(app)
    commands = group.commands
    called = re.findall(r"\bafterimage (\w+)", script + table)
    assert called and set(called) <= set(commands)
    assert all(len(line.split("  flock ")[0].split()) == 5 for line in table.strip().splitlines())
