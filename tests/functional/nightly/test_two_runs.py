"""Two processes build the same tables at one time; on Iceberg, for Derby admits one only.

What is made by hand in test_concurrent_runs.py is left to chance here.
"""

from __future__ import annotations

from tests.functional.runs import Runs

ROUNDS = 5


def test_two_runs_at_one_time_lose_and_double_nothing(runs: Runs) -> None:
    runs.prepare()
    expected, _ = runs.build()
    for _ in range(ROUNDS):
        runs.go_back()
        outcomes = runs.build_twice_at_once()
        assert any(status == 0 for status, _ in outcomes)
        for status, output in outcomes:
            assert status == 0 or "another run wrote to it" in output, output[-3000:]
        tables, _ = runs.build()
        assert tables == expected
