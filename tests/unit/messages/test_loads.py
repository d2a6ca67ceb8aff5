"""Which REFRESH messages make a full load; expected loads are computed by hand."""

from __future__ import annotations

from dbt_afterimage.sources.qlik_messages.load_runs import (
    FullLoad,
    Range,
    Recorded,
    Run,
    as_recorded,
    full_loads,
    new_and_late,
)

TABLE = (None, "carts")
START = "0" * 35


def at(number: int) -> str:
    return f"2026030212000000{number:019d}"


def run(partition: int, offset: int, after: str, ended_by: str | None) -> Run:
    return Run(TABLE, "carts", partition, offset, offset + 4, 5, after, ended_by, None)


def told(loads: list[FullLoad]) -> list[tuple[str, str, bool, int]]:
    """Name, greatest change before it, whether it is complete, number of runs."""
    return [(load.load_id, load.after, load.is_complete, len(load.runs)) for load in loads]


def test_runs_of_all_partitions_with_a_place_in_common_are_one_load() -> None:
    runs = [run(0, 0, "", "10"), run(1, 0, "", "30"), run(2, 0, "", "11")]
    assert told(full_loads(runs)) == [("carts-0-0", "", True, 3)]


def test_a_load_waits_for_a_change_in_each_partition() -> None:
    assert told(full_loads([run(0, 0, "", "10"), run(1, 0, "", None)])) == [
        ("carts-0-0", "", False, 2)
    ]


def test_a_change_between_two_runs_makes_two_loads() -> None:
    runs = [run(0, 0, "", "10"), run(1, 0, "", "12"), run(0, 20, "15", "20"), run(1, 9, "14", "22")]
    assert told(full_loads(runs)) == [("carts-0-0", "", True, 2), ("carts-0-20", "15", True, 2)]


def test_a_partition_without_changes_between_two_loads_has_rows_of_both() -> None:
    runs = [run(0, 0, "", "10"), run(0, 20, "15", "20"), run(1, 0, "", "22")]
    loads = full_loads(runs)
    assert told(loads) == [("carts-0-0", "", True, 2), ("carts-0-20", "15", True, 2)]
    assert runs[2] in loads[0].runs and runs[2] in loads[1].runs


def test_no_two_loads_have_one_name() -> None:
    runs = [
        run(0, 0, "", "50"),
        run(1, 0, "", "10"),
        run(1, 20, "15", "20"),
        run(1, 40, "25", "60"),
    ]
    assert told(full_loads(runs)) == [
        ("carts-0-0", "", True, 2),
        ("carts-1-20", "15", True, 2),
        ("carts-1-40", "25", True, 2),
    ]


def test_a_load_lies_just_behind_the_last_change_before_it() -> None:
    last = "20260302120000000000000000000000009"
    [first] = full_loads([run(0, 0, "", last)])
    [second] = full_loads([run(0, 9, last, None)])
    assert first.position == "0" * 35
    assert second.position == "20260302120000000000000000000000010"


def test_an_older_change_behind_a_run_shows_that_it_was_sent_twice() -> None:
    assert run(0, 30, "15", "11").is_redelivered
    assert not run(0, 30, "15", "16").is_redelivered
    assert not run(0, 30, "15", None).is_redelivered


def sorted_out(
    runs: list[Run], recorded: Recorded
) -> tuple[list[str], list[tuple[str, list[Range]]]]:
    """Names of new loads; names of recorded ones and the messages that they are without."""
    new, late = new_and_late(full_loads(runs), recorded)
    return (
        [load.load_id for load in new],
        [(load.load_id, [run.range for run in load.runs]) for load in late],
    )


def test_a_load_that_nothing_had_ended_ends_with_the_next_change() -> None:
    """It was recorded by the word of the user: loads behind it are new."""
    forced = Recorded(position=START, ranges=[("carts", 0, 0, 4)])
    assert sorted_out([run(0, 0, "", None)], forced) == ([], [])
    runs = [run(0, 0, "", at(5)), run(0, 6, at(5), at(6))]
    assert sorted_out(runs, forced) == (["carts-0-6"], [])


def test_what_comes_behind_a_recorded_run_is_late() -> None:
    forced = Recorded(position=START, ranges=[("carts", 0, 0, 4)])
    grown = Run(TABLE, "carts", 0, 0, 9, 10, "", at(5), None)
    assert sorted_out([grown], forced) == ([], [("carts-0-0", [("carts", 0, 5, 9)])])
    known = Recorded(at(5), START, [("carts", 0, 0, 4), ("carts", 0, 5, 9)])
    assert sorted_out([grown], known) == ([], [])


def test_a_partition_that_is_heard_of_later_is_late_unless_a_later_load_has_it() -> None:
    recorded = Recorded(until=at(5), position=START, ranges=[("carts", 0, 0, 4)])
    runs = [run(0, 0, "", at(5)), run(1, 0, "", at(7))]
    assert sorted_out(runs, recorded) == ([], [("carts-0-0", [("carts", 1, 0, 4)])])
    runs.append(run(0, 9, at(6), None))
    assert sorted_out(runs, recorded) == (["carts-0-9"], [])


def test_a_load_keeps_the_name_that_it_was_recorded_by() -> None:
    """Partition 0 was heard of too late, and gives the first of two loads another name now."""
    runs = [
        run(0, 0, "", "12"),
        run(1, 0, "", "11"),
        run(1, 20, "15", None),
        run(0, 40, "16", None),
    ]
    loads = full_loads(runs)
    assert told(loads) == [("carts-0-0", "", True, 2), ("carts-0-40", "16", False, 2)]
    names = {"carts-1-0": [("carts", 1, 0, 4)], "carts-1-20": [("carts", 1, 20, 24)]}
    # what was recorded by the word of the user is whole
    assert told(as_recorded(loads, names)) == [
        ("carts-1-0", "", True, 2),
        ("carts-1-20", "16", True, 2),
    ]
    assert as_recorded(loads, {}) == loads


def test_a_name_is_given_once() -> None:
    """A run of two loads of which one was recorded: a load that has its own name keeps that."""
    loads = full_loads([run(0, 0, "", "10"), run(0, 20, "15", "20"), run(1, 0, "", "22")])
    names = {"carts-0-20": [("carts", 0, 20, 24), ("carts", 1, 0, 4)]}
    assert told(as_recorded(loads, names)) == told(loads)
    names = {"carts-1-0": [("carts", 1, 0, 4)]}
    assert [load.load_id for load in as_recorded(loads, names)] == ["carts-1-0", "carts-0-20"]
