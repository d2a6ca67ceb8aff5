"""A run that is killed at a random moment, again and again, leaves what an undisturbed run leaves.

SIGKILL goes to the whole process group: Python, Spark and all. `--kills 50` for more of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLS_IN_A_ROW = 3


@dataclass(frozen=True)
class Runs:
    """Runs of tests.functional.killed_run in a warehouse of their own."""

    warehouse: Path
    profiles: Path
    table_format: str
    scratch: Path

    def start(self, action: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.functional.killed_run", action]
        common = [str(self.profiles), self.table_format, str(self.scratch)]
        return subprocess.Popen(
            [*command, *common, *arguments],
            cwd=ROOT,
            env={**os.environ, "AFTERIMAGE_WAREHOUSE": str(self.warehouse)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> None:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output[-3000:]

    def build(self) -> tuple[dict[str, list[str]], float]:
        """An undisturbed run: the tables it leaves, and the seconds it took after the start."""
        result = self.scratch / "result.json"
        process = self.start("build", str(result))
        self.wait_until_started(process)
        began = time.monotonic()
        self.finish(process)
        tables: dict[str, list[str]] = json.loads(result.read_text(encoding="utf-8"))
        return tables, time.monotonic() - began

    def kill(self, seconds: float) -> None:
        """A run that is killed so long after the start, unless it is done by then."""
        process = self.start("build", str(self.scratch / "of_a_killed_run.json"))
        self.wait_until_started(process)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    @staticmethod
    def wait_until_started(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.strip() == "started":
                return
        raise AssertionError("".join(seen)[-3000:])


@pytest.fixture
def runs(profiles: Path, table_format: str, tmp_path: Path) -> Runs:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    own_profiles = tmp_path / "profiles"
    own_profiles.mkdir()
    text = (profiles / "profiles.yml").read_text(encoding="utf-8")
    (own_profiles / "profiles.yml").write_text(
        text.replace(os.environ["AFTERIMAGE_WAREHOUSE"], str(warehouse)), encoding="utf-8"
    )
    return Runs(warehouse, own_profiles, table_format, tmp_path / "scratch")


def test_killed_runs_leave_what_an_undisturbed_run_leaves(
    runs: Runs, request: pytest.FixtureRequest
) -> None:
    kills = int(request.config.getoption("--kills"))
    chooser = random.Random(kills)
    runs.finish(runs.start("prepare"))
    prepared = runs.warehouse.with_name("prepared")
    shutil.copytree(runs.warehouse, prepared, symlinks=True)
    expected, duration = runs.build()
    assert all(expected.values())
    for first in range(0, kills, KILLS_IN_A_ROW):
        shutil.rmtree(runs.warehouse)
        shutil.copytree(prepared, runs.warehouse, symlinks=True)
        moments = [chooser.uniform(0, duration) for _ in range(min(KILLS_IN_A_ROW, kills - first))]
        for moment in moments:
            runs.kill(moment)
        tables, _ = runs.build()
        assert tables == expected, f"after kills at {moments} seconds"
