"""What is recorded of a dbt run, from dbt's events and its run_results.json."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_afterimage.dbt_spark import run_record
from dbt_afterimage.dbt_spark.run_record import RUNS_FILE, append_results, append_run

RESULTS: dict[str, Any] = {
    "metadata": {
        "invocation_id": "1f",
        "generated_at": "2026-03-02T12:00:05Z",
        "invocation_started_at": "2026-03-02T12:00:00Z",
    },
    "args": {"which": "build", "select": ["orders+"], "vars": "{password: secret}"},
    "elapsed_time": 4.5,
    "results": [
        {
            "unique_id": "model.shop.orders",
            "status": "success",
            "execution_time": 3.0,
            "message": "OK, 5 rows",
        },
        {
            "unique_id": "test.shop.unique_orders.0f",
            "status": "fail",
            "execution_time": 1.0,
            "message": "x" * 5000,
        },
    ],
}


def event(name: str, **data: Any) -> Any:
    info = SimpleNamespace(name=name, invocation_id="1f")
    return SimpleNamespace(info=info, data=SimpleNamespace(**data))


def runs(folder: Path) -> list[dict[str, Any]]:
    text = (folder / RUNS_FILE).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    file = tmp_path / "run_results.json"
    file.write_text(json.dumps(RESULTS), encoding="utf-8")
    return file


def test_a_run_is_recorded_without_vars_and_with_messages_of_failures_only(results: Path) -> None:
    append_results(results)
    assert runs(results.parent) == [
        {
            "id": "1f",
            "command": "build",
            "select": ["orders+"],
            "started_at": "2026-03-02T12:00:00Z",
            "seconds": 4.5,
            "error": None,
            "steps": [
                {
                    "node": "model.shop.orders",
                    "status": "success",
                    "seconds": 3.0,
                    "message": None,
                },
                {
                    "node": "test.shop.unique_orders.0f",
                    "status": "fail",
                    "seconds": 1.0,
                    "message": "x" * 2000,
                },
            ],
        }
    ]


@pytest.mark.parametrize("command", ["compile", "generate", "run-operation", "show", None])
def test_commands_that_run_no_node_are_not_recorded(tmp_path: Path, command: str | None) -> None:
    append_run(tmp_path / RUNS_FILE, {"command": command})
    assert list(tmp_path.iterdir()) == []


def test_the_older_half_is_dropped_from_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / RUNS_FILE
    for number in range(4):
        append_run(file, {"command": "run", "id": number}, max_bytes=10_000)
    append_run(file, {"command": "run", "id": 4}, max_bytes=50)
    assert [run["id"] for run in runs(tmp_path)] == [2, 3, 4]


def test_the_results_that_dbt_has_written_are_recorded_once(results: Path) -> None:
    recorder = run_record._Recorder()
    recorder.on_event(event("ArtifactWritten", artifact_path=str(results.parent / "manifest.json")))
    assert not (results.parent / RUNS_FILE).exists()
    recorder.on_event(event("ArtifactWritten", artifact_path=str(results)))
    # --fail-fast raises an error after the results
    recorder.on_event(event("MainEncounteredError", exc="FailFast Error"))
    recorder.on_event(event("CommandCompleted", elapsed=5.0))
    assert len(runs(results.parent)) == 1


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    given = SimpleNamespace(WHICH="run", SELECT=("a", "b"), PROJECT_DIR=str(tmp_path))
    monkeypatch.setattr("dbt.flags.get_flags", lambda: given)
    return tmp_path


def test_a_run_that_ended_before_its_first_step_is_recorded_with_its_error(flags: Path) -> None:
    (flags / "target").mkdir()
    recorder = run_record._Recorder()
    recorder.on_event(event("MainEncounteredError", exc="`key` is 3. Fix: name columns."))
    recorder.on_event(event("CommandCompleted", elapsed=5.0))
    (run,) = runs(flags / "target")
    assert (run["id"], run["command"], run["select"]) == ("1f", "run", ["a", "b"])
    assert (run["error"], run["steps"]) == ("`key` is 3. Fix: name columns.", [])


def test_a_command_that_succeeds_without_results_is_not_recorded(flags: Path) -> None:
    run_record._Recorder().on_event(event("CommandCompleted", elapsed=5.0))
    assert list(flags.iterdir()) == []


def test_a_record_that_cannot_be_written_fails_no_run(
    flags: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(run_record.logger, "warning", said.append)
    recorder = run_record._Recorder()
    # there is no folder `target`
    recorder.on_event(event("MainEncounteredError", exc="no"))
    recorder.on_event(event("CommandCompleted", elapsed=5.0))
    (flags / "run_results.json").write_text("{", encoding="utf-8")
    recorder.on_event(event("ArtifactWritten", artifact_path=str(flags / "run_results.json")))
    assert len(said) == 2
    assert all(RUNS_FILE in each for each in said)
