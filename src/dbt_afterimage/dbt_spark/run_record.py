"""Appends a summary of each dbt run to a file, so that a report can compare runs.

dbt overwrites run_results.json with every command. `afterimage_runs.jsonl`, in the same folder, has
one line of JSON per command that runs nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

logger = AdapterLogger("afterimage")

RUNS_FILE = "afterimage_runs.jsonl"
RESULTS_FILE = "run_results.json"
COMMANDS = ("build", "run", "retry", "test", "seed", "snapshot")
"""Commands that are recorded; others, such as `compile`, run no node."""

SUCCEEDED = ("success", "pass", "warn", "no-op")
_LONGEST_MESSAGE = 2000
_MAX_BYTES = 5 * 1024 * 1024


def record_runs() -> None:
    """Record the run of the dbt command that has just begun, once it ends."""
    from dbt_common.events.event_manager_client import add_callback_to_manager

    # dbt removes all callbacks when a command begins (dbt_common/events/event_manager_client.py)
    add_callback_to_manager(_Recorder().on_event)


class _Recorder:
    """Listens to the events of one command."""

    def __init__(self) -> None:
        self._is_recorded = False
        self._error = ""

    def on_event(self, event: Any) -> None:
        """Record the run when dbt has written its results, or has ended without any."""
        name = event.info.name
        if name == "ArtifactWritten" and Path(event.data.artifact_path).name == RESULTS_FILE:
            self._is_recorded = True
            self._record(lambda: append_results(Path(event.data.artifact_path)))
        elif name == "MainEncounteredError":
            self._error = str(event.data.exc)
        elif name == "CommandCompleted" and self._error and not self._is_recorded:
            # a hook before the first model failed, for example because a setting is wrong
            self._record(lambda: self._append_stopped(event))

    def _append_stopped(self, event: Any) -> None:
        from dbt.flags import get_flags

        flags: Any = get_flags()  # type: ignore[no-untyped-call]
        seconds = float(event.data.elapsed)
        ended = datetime.now(timezone.utc)
        run = {
            "id": event.info.invocation_id,
            "command": flags.WHICH,
            "select": list(getattr(flags, "SELECT", None) or []),
            "started_at": (ended - timedelta(seconds=seconds)).isoformat(),
            "seconds": seconds,
            "error": self._error[:_LONGEST_MESSAGE],
            "steps": [],
        }
        folder = Path(flags.PROJECT_DIR) / (getattr(flags, "TARGET_PATH", None) or "target")
        append_run(folder / RUNS_FILE, run)

    def _record(self, append: Callable[[], None]) -> None:
        try:
            append()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            # the run itself has ended well, or has said why not
            logger.warning(f"This run is not recorded in {RUNS_FILE}: {error!r}")


def summary_of(results: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run.

    Args:
        results: the content of dbt's run_results.json.

    Returns:
        The invocation's id, command and selection, when it started (ISO text in UTC), its seconds,
        and its steps; the message of a step is kept only if the step did not succeed. `error` is
        None: it is the text of a command that ended before its first step.
    """
    arguments, metadata = results["args"], results["metadata"]
    return {
        "id": metadata["invocation_id"],
        "command": arguments.get("which"),
        "select": list(arguments.get("select") or []),
        "started_at": metadata.get("invocation_started_at") or metadata["generated_at"],
        "seconds": results["elapsed_time"],
        "error": None,
        "steps": [_step(each) for each in results["results"]],
    }


def append_results(results_file: Path) -> None:
    """Add the run of dbt's run_results.json to the file of runs in its folder."""
    run = summary_of(json.loads(results_file.read_text(encoding="utf-8")))
    append_run(results_file.with_name(RUNS_FILE), run)


def append_run(file: Path, run: Mapping[str, Any], max_bytes: int = _MAX_BYTES) -> None:
    """Add a run to a file of runs.

    Args:
        run: what is recorded of the run; of a command that runs no node nothing is.
        max_bytes: once the file is larger, its older half is dropped.
    """
    if run["command"] not in COMMANDS:
        return
    with file.open("a", encoding="utf-8") as runs:
        runs.write(json.dumps(run, ensure_ascii=False) + "\n")
    if file.stat().st_size > max_bytes:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        part = file.with_name(RUNS_FILE + ".part")
        part.write_text("".join(lines[len(lines) // 2 :]), encoding="utf-8")
        part.replace(file)


def _step(result: Mapping[str, Any]) -> dict[str, Any]:
    is_success = result["status"] in SUCCEEDED
    message = None if is_success else str(result.get("message") or "")[:_LONGEST_MESSAGE]
    return {
        "node": result["unique_id"],
        "status": result["status"],
        "seconds": result["execution_time"],
        "message": message,
    }
