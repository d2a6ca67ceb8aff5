"""A run that is killed at a random moment, again and again, leaves what an undisturbed run leaves.

SIGKILL goes to the whole process group: Python, Spark and all. `--kills 50` for more of them.
"""

from __future__ import annotations

import random

import pytest

from tests.functional.runs import Runs

KILLS_IN_A_ROW = 3


def test_killed_runs_leave_what_an_undisturbed_run_leaves(
    runs: Runs, request: pytest.FixtureRequest
) -> None:
    kills = int(request.config.getoption("--kills"))
    chooser = random.Random(kills)
    runs.prepare()
    expected, duration = runs.build()
    assert all(expected.values())
    for first in range(0, kills, KILLS_IN_A_ROW):
        runs.go_back()
        moments = [chooser.uniform(0, duration) for _ in range(min(KILLS_IN_A_ROW, kills - first))]
        for moment in moments:
            runs.kill(moment)
        tables, _ = runs.build()
        assert tables == expected, f"after kills at {moments} seconds"
