"""The benchmark runs: a few rows through each step and each baseline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_settings import INTERPRETED

ROOT = Path(__file__).parents[2]
# most of a tiny run is code that runs a few times
# without the second compiler Java reserves 48 MiB for code, which this run fills
FIRST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m"
MOST_CLASSES, MOST_JOBS = 5, 33


@pytest.mark.both_formats
def test_a_tiny_benchmark_measures_each_step(
    table_format: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    text = benchmark(pytestconfig, table_format, tmp_path, "--no-late", "--no-snapshot")
    for step in ("staging", "items_changes", "items_history", "items_current"):
        assert f"| {step} |" in text, text


@pytest.mark.nightly
@pytest.mark.both_formats
def test_late_changes_and_a_dbt_snapshot_are_measured_too(
    table_format: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    text = benchmark(pytestconfig, table_format, tmp_path)
    assert "| items_history, late changes |" in text, text
    assert "snapshot" in text, text


def test_a_further_batch_runs_few_jobs_and_compiles_nothing(
    table_format: str, tmp_path: Path
) -> None:
    """The budget of docs/internals/statements.md; see there what each job is for."""
    sizes = ["--keys", "2000", "--changes", "100", "--columns", "6", "--batches", "4"]
    run("benchmarks.statements", table_format, tmp_path, {}, *sizes)
    figures = json.loads((tmp_path / "statements.json").read_text(encoding="utf-8"))
    last = figures[-1]
    assert last["classes"] <= MOST_CLASSES, figures
    assert last["jobs"] <= MOST_JOBS, figures


def benchmark(config: pytest.Config, table_format: str, folder: Path, *options: str) -> str:
    """The report of a benchmark with a few rows."""
    plans = {} if config.getoption("--compiled") else INTERPRETED
    java_options = [FIRST_COMPILER, *(f"-D{name}={value}" for name, value in plans.items())]
    sizes = [
        "--keys",
        "300",
        "--changes",
        "60",
        "--columns",
        "5",
        "--repeats",
        "1",
    ]
    java = {"JDK_JAVA_OPTIONS": " ".join(java_options)}
    run("benchmarks", table_format, folder, java, *sizes, *options)
    assert json.loads((folder / f"{table_format}.json").read_text(encoding="utf-8"))
    return (folder / f"{table_format}.md").read_text(encoding="utf-8")


def run(module: str, table_format: str, folder: Path, java: dict[str, str], *options: str) -> None:
    given = ["--table-format", table_format, *options, "--results", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", module, *given],
        cwd=ROOT,
        env={**os.environ, **java},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
