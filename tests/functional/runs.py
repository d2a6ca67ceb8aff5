"""Runs of programs such as killed_run: processes of their own, in a warehouse of their own."""

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

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Runs:
    """Runs of tests.functional.killed_run in a warehouse of their own."""

    warehouse: Path
    profiles: Path
    table_format: str
    scratch: Path

    def start(
        self,
        action: str,
        *arguments: str,
        folder: str = "target",
        module: str = "tests.functional.killed_run",
    ) -> subprocess.Popen[str]:
        """A run in the background; `folder` is where dbt has its target and its log."""
        common = [str(self.profiles), self.table_format, str(self.scratch / folder)]
        return self.spawn(module, action, *common, *arguments)

    def spawn(self, module: str, *arguments: str) -> subprocess.Popen[str]:
        """A module in a process group of its own; it prints `started` when Spark is there."""
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, "AFTERIMAGE_WAREHOUSE": str(self.warehouse)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> None:
        output, _ = process.communicate(timeout=1800)
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
        self.kill_after(self.start("build", str(self.scratch / "of_a_killed_run.json")), seconds)

    def kill_after(self, process: subprocess.Popen[str], seconds: float) -> None:
        """Kill a process group so long after its start, unless it is done by then."""
        self.wait_until_started(process)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def of_capture(self, action: str, system: str, place: str = "") -> None:
        """A run of tests.functional.captured_run."""
        self.finish(self._start_of_capture(action, system, place))

    def of_capture_with_kills(
        self, system: str, brokers: str, kills: int, chooser: random.Random
    ) -> None:
        """Land what Debezium has sent and build it, each after runs killed at random moments."""
        for action, place in (("land", brokers), ("build", "")):
            for _ in range(kills):
                process = self._start_of_capture(action, system, place)
                self.kill_after(process, chooser.uniform(0, 20))
            self.of_capture(action, system, place)

    def _start_of_capture(self, *arguments: str) -> subprocess.Popen[str]:
        action, *others = arguments
        return self.start(action, *others, module="tests.functional.captured_run")

    def build_twice_at_once(self) -> list[tuple[int, str]]:
        """Two runs side by side: what each exits with, and what it prints."""
        processes = [
            self.start("build", str(self.scratch / f"{name}.json"), folder=name)
            for name in ("one", "other")
        ]
        for process in processes:
            self.wait_until_started(process)
        outputs = [process.communicate(timeout=300)[0] for process in processes]
        return [
            (process.returncode, output) for process, output in zip(processes, outputs, strict=True)
        ]

    @staticmethod
    def wait_until_started(process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if line.strip() == "started":
                return
        raise AssertionError("".join(seen)[-3000:])

    def prepare(self) -> None:
        """Build the first batch, land the second, and keep the warehouse as it is then."""
        self.finish(self.start("prepare"))
        shutil.copytree(self.warehouse, self._prepared, symlinks=True)

    def go_back(self) -> None:
        """The warehouse as `prepare` left it."""
        shutil.rmtree(self.warehouse)
        shutil.copytree(self._prepared, self.warehouse, symlinks=True)

    @property
    def _prepared(self) -> Path:
        return self.warehouse.with_name("prepared")
