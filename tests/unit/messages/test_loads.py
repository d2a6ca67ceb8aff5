"""Which REFRESH messages make a full load; expected loads are worked out by hand."""

from __future__ import annotations

from dbt_afterimage.messages.loads import FullLoad, Run, full_loads

TABLE = (None, "carts")


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
