"""The project's last dbt runs and their steps, from the files that a run leaves in dbt's target."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import median
from typing import Any

from dbt_afterimage.cli.support.project_session import project_folder
from dbt_afterimage.dbt_spark.run_record import (
    COMMANDS,
    RESULTS_FILE,
    RUNS_FILE,
    SUCCEEDED,
    summary_of,
)

_SKIPPED = "skipped"


@dataclass(frozen=True)
class Step:
    """A node that a run executed.

    Attributes:
        name: of the model, test or seed.
        kind: `model`, `test`, `unit_test`, `seed`, `snapshot` or `operation`.
        status: dbt's, such as `success`, `error` or `skipped`.
        seconds: how long it took.
        message: why it did not succeed; None if it did.
    """

    name: str
    kind: str
    status: str
    seconds: float
    message: str | None

    @property
    def is_failed(self) -> bool:
        """Whether it ran and did not succeed; a skipped step did not run."""
        return self.status not in (*SUCCEEDED, _SKIPPED)

    @property
    def is_skipped(self) -> bool:
        """Whether it did not run, because a step before it failed."""
        return self.status == _SKIPPED


@dataclass(frozen=True)
class Run:
    """A dbt command that runs nodes.

    Attributes:
        command: with its selection, such as `build --select orders+`.
        started_at: UTC.
        seconds: how long it took.
        error: why it ended before its first step; None if it did not.
        steps: the nodes that it executed or skipped.
    """

    command: str
    started_at: datetime
    seconds: float
    error: str | None
    steps: tuple[Step, ...]

    @property
    def ended_at(self) -> datetime:
        """When dbt had finished its last step."""
        return self.started_at + timedelta(seconds=self.seconds)

    @property
    def failed(self) -> list[Step]:
        """Steps that ran and did not succeed."""
        return [step for step in self.steps if step.is_failed]

    @property
    def failures(self) -> int:
        """How many steps failed; 1 if the run ended before its first step."""
        return len(self.failed) + (self.error is not None)

    def count(self, kinds: Iterable[str]) -> int:
        """How many steps of these kinds ran."""
        wanted = set(kinds)
        return sum(step.kind in wanted and not step.is_skipped for step in self.steps)


@dataclass(frozen=True)
class StepTimes:
    """How long a step took in several runs, in seconds."""

    name: str
    kind: str
    runs: int
    last: float
    median: float
    longest: float


def target_folder() -> Path:
    """Dbt's target folder of the project in the working folder."""
    return project_folder() / os.environ.get("DBT_TARGET_PATH", "target")


def last_runs(folder: Path) -> list[Run]:
    """The runs that are known, the newest first.

    Args:
        folder: dbt's target folder; without a file of runs, it holds the last run only.
    """
    found: dict[str, dict[str, Any]] = {}
    file = folder / RUNS_FILE
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            # the last line of a process that was killed may be cut off
            try:
                run = json.loads(line)
            except ValueError:
                continue
            found[run["id"]] = run
    results = folder / RESULTS_FILE
    if results.exists():
        run = summary_of(json.loads(results.read_text(encoding="utf-8")))
        if run["command"] in COMMANDS:
            found[run["id"]] = run
    return sorted(map(_run, found.values()), key=lambda run: run.started_at, reverse=True)


def last_results(folder: Path, schema: str) -> dict[str, str]:
    """The status of each model in its last run, by its name in the progress table."""
    nodes = read_manifest(folder)["nodes"]
    names = {
        node["name"]: progress_name(node, schema)
        for key, node in nodes.items()
        if key.startswith("model.")
    }
    found: dict[str, str] = {}
    for run in last_runs(folder):
        for step in run.steps:
            if step.kind == "model":
                found.setdefault(names.get(step.name, step.name), step.status)
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of dbt's last command; without nodes and sources if there is none."""
    file = folder / "manifest.json"
    if not file.exists():
        return {"nodes": {}, "sources": {}}
    manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return manifest


def change_log_nodes(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The models of a manifest that are change logs."""
    nodes = manifest["nodes"].values()
    return [node for node in nodes if node["config"].get("materialized") == "change_log"]


def progress_name(node: Mapping[str, Any], schema: str) -> str:
    """The name of a model in the progress table.

    Args:
        node: of dbt's manifest.
    """
    alias = str(node["alias"])
    return alias if node["schema"] == schema else f"{node['schema']}.{alias}"


def slowest_steps(runs: Iterable[Run], limit: int) -> list[StepTimes]:
    """The steps with the longest median time, the slowest first."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for step in run.steps:
            if not step.is_skipped:
                seconds.setdefault((step.name, step.kind), []).append(step.seconds)
    found = [
        StepTimes(name, kind, len(each), each[0], median(each), max(each))
        for (name, kind), each in seconds.items()
    ]
    return sorted(found, key=lambda step: (-step.median, step.name))[:limit]


def _run(recorded: Mapping[str, Any]) -> Run:
    started = datetime.fromisoformat(recorded["started_at"].replace("Z", "+00:00"))
    if started.tzinfo is None:
        started = started.replace(tzinfo=timezone.utc)
    command = " ".join(
        [recorded["command"], *(["--select"] if recorded["select"] else []), *recorded["select"]]
    )
    steps = tuple(_step(each) for each in recorded["steps"])
    return Run(command, started, float(recorded["seconds"]), recorded.get("error"), steps)


def _step(recorded: Mapping[str, Any]) -> Step:
    kind, _, name = recorded["node"].split(".", 2)
    # the name of a generic test is followed by a hash, that of a unit test by its model
    short = name.partition(".")[0] if kind == "test" else name.rpartition(".")[2]
    return Step(
        short, kind, recorded["status"], float(recorded["seconds"] or 0), recorded["message"]
    )
