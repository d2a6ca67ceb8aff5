"""Arithmetic on change_seq: look-back, the next position, the position of a time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbt_afterimage.sequence import (
    ChangeFeedSequence,
    NumberedChangeSequence,
    OpenEdgeChangeSequence,
    QlikChangeSequence,
    SolidDbChangeSequence,
    duration_seconds,
)
from dbt_afterimage.settings import positions

COUNTER = "0000000000000012345"
WIDTH = 35

durations = st.builds(
    "{} {}".format, st.integers(0, 5000), st.sampled_from(["seconds", "minutes", "hours", "days"])
)
times = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2999, 12, 31))


def seq(time: str, hundredths: str = "07", counter: str = COUNTER) -> str:
    """The position of a time such as `2026-03-02 08:00:00`."""
    return "".join(c for c in time if c.isdigit()) + hundredths + counter


@given(
    st.tuples(
        st.integers(1, 9999),
        st.integers(0, 13),
        st.integers(0, 32),
        st.integers(0, 25),
        st.integers(0, 61),
        st.integers(0, 61),
    )
)
@example((2000, 2, 29, 0, 0, 0))
@example((1900, 2, 29, 0, 0, 0))
@example((2024, 2, 29, 23, 59, 59))
@example((2026, 2, 29, 0, 0, 0))
@example((2026, 2, 30, 0, 0, 0))
@example((2026, 6, 31, 0, 0, 0))
def test_a_valid_position_of_qlik_begins_with_a_time(
    parts: tuple[int, int, int, int, int, int],
) -> None:
    try:
        datetime(*parts)
        is_time = True
    except ValueError:
        is_time = False
    year, *rest = parts
    text = seq(f"{year:04d}" + "".join(f"{part:02d}" for part in rest))
    assert len(text) == WIDTH
    assert (re.fullmatch(QlikChangeSequence.valid_pattern(), text) is not None) == is_time


def test_the_look_back_comes_from_the_settings() -> None:
    where = positions({"system": "qlik_change_table", "look_back": "2 hours", "key": ["id"]})
    assert where == QlikChangeSequence(look_back="2 hours")


@pytest.mark.parametrize(
    ("look_back", "time", "earlier"),
    [
        ("15 minutes", "2026-03-02 08:30:00", "2026-03-02 08:15:00"),
        ("15 minutes", "2026-03-02 08:05:59", "2026-03-02 07:50:59"),
        ("15 minutes", "2026-03-02 00:05:00", "2026-03-01 23:50:00"),
        ("15 minutes", "2026-01-01 00:00:00", "2025-12-31 23:45:00"),
        ("1 day", "2028-03-01 00:00:00", "2028-02-29 00:00:00"),
        ("1 day", "2026-03-01 00:00:00", "2026-02-28 00:00:00"),
        # no summer time in UTC
        ("1 day", "2026-03-29 12:00:00", "2026-03-28 12:00:00"),
        ("0 seconds", "2026-03-02 08:00:00", "2026-03-02 08:00:00"),
    ],
)
def test_look_back(look_back: str, time: str, earlier: str) -> None:
    assert QlikChangeSequence(look_back).before_look_back(seq(time)) == seq(earlier)


@given(look_back=durations, time=times, counter=st.integers(0, 10**19 - 1))
def test_look_back_moves_the_time_and_keeps_the_rest(
    look_back: str, time: datetime, counter: int
) -> None:
    given_seq = seq(f"{time:%Y-%m-%d %H:%M:%S}", "99", f"{counter:019d}")
    earlier = QlikChangeSequence(look_back).before_look_back(given_seq)
    assert len(earlier) == WIDTH
    assert earlier <= given_seq
    assert earlier[14:] == given_seq[14:]
    moved = datetime.strptime(given_seq[:14], "%Y%m%d%H%M%S") - timedelta(
        seconds=duration_seconds(look_back)
    )
    assert earlier[:14] == moved.strftime("%Y%m%d%H%M%S").zfill(14)


@pytest.mark.parametrize("look_back", ["999999 days", "99999999999 days"])
def test_a_look_back_beyond_the_calendar_covers_everything(look_back: str) -> None:
    assert QlikChangeSequence(look_back).before_look_back(seq("2026-03-02 08:00:00")) == ""


def test_a_look_back_into_the_first_centuries_still_compares_as_text() -> None:
    earlier = QlikChangeSequence("739000 days").before_look_back(seq("2026-03-02 08:00:00"))
    assert len(earlier) == WIDTH
    assert earlier.startswith("000")


def test_the_look_back_of_a_first_load_covers_everything() -> None:
    where = QlikChangeSequence("15 minutes")
    assert where.before_look_back(where.first) == ""
    assert where.before_look_back(where.after(where.first)) == ""


def test_the_first_position_sorts_before_every_change() -> None:
    where = QlikChangeSequence("15 minutes")
    assert where.first == "0" * WIDTH
    assert where.first < seq("1970-01-01 00:00:00", "00", "0" * 19)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0" * 35, "0" * 34 + "1"),
        ("2026030208000007" + "0" * 18 + "9", "2026030208000007" + "0" * 17 + "10"),
        ("2026030208000007" + "9" * 19, "2026030208000008" + "0" * 19),
    ],
)
def test_after(before: str, after: str) -> None:
    assert QlikChangeSequence("15 minutes").after(before) == after


@given(number=st.integers(0, 10**35 - 2))
def test_nothing_lies_between_a_position_and_the_one_after(number: int) -> None:
    given_seq = f"{number:035d}"
    after = QlikChangeSequence("15 minutes").after(given_seq)
    assert len(after) == WIDTH
    assert given_seq < after
    assert int(after) - int(given_seq) == 1


@pytest.mark.parametrize(
    ("time", "digits"),
    [
        (datetime(2026, 3, 2), "2026030200000000"),
        (datetime(2026, 3, 2, 8, 5, 9, 70_000), "2026030208050907"),
        (datetime(2026, 3, 2, 8, 5, 9, 999_999), "2026030208050999"),
        (datetime(900, 1, 1), "0900010100000000"),
        # a time with a zone is another time in UTC
        (
            datetime(2026, 3, 2, 0, 30, tzinfo=timezone(timedelta(hours=1))),
            "2026030123300000",
        ),
        (datetime(2026, 3, 2, tzinfo=timezone.utc), "2026030200000000"),
    ],
)
def test_of_time(time: datetime, digits: str) -> None:
    assert QlikChangeSequence("15 minutes").of_time(time) == digits + "0" * 19


@given(earlier=times, later=times)
def test_positions_of_times_are_in_the_order_of_the_times(
    earlier: datetime, later: datetime
) -> None:
    where = QlikChangeSequence("15 minutes")
    low, high = sorted((earlier, later))
    assert where.of_time(low) <= where.of_time(high)
    assert len(where.of_time(low)) == WIDTH


# --- positions that count changes


class HexPositions(NumberedChangeSequence):
    """Addresses of a log, in one of two widths."""

    widths = (4, 6)
    base = 16


def test_the_newest_position_of_a_feed_may_wait() -> None:
    where = ChangeFeedSequence(0)
    assert where.before_look_back("00000000000000A0") == "000000000000009F"
    assert where.before_look_back(where.first) == ""


@pytest.mark.parametrize(
    ("text", "is_form"),
    [
        ("0000000000000000042", True),
        ("9223372036854775807", True),
        ("42", False),
        ("00000000000000000042", False),
        ("000000000000000004A", False),
        ("000000000000000004\n", False),
        ("", False),
    ],
)
def test_the_form_of_numbered_positions(text: str, is_form: bool) -> None:
    assert OpenEdgeChangeSequence.form() == "19 digits"
    assert OpenEdgeChangeSequence.is_form_of(text) is is_form


@pytest.mark.parametrize(
    ("seq", "look_back", "earlier"),
    [
        ("0000000000000010001", 10_000, "0000000000000000001"),
        ("0000000000000010000", 10_000, ""),
        ("0000000000000000007", 10_000, ""),
        ("0000000000000000007", 0, "0000000000000000007"),
        ("0000000000000000000", 0, ""),
        ("9223372036854775807", 7, "9223372036854775800"),
    ],
)
def test_the_look_back_is_a_number_of_changes(seq: str, look_back: int, earlier: str) -> None:
    assert OpenEdgeChangeSequence(look_back).before_look_back(seq) == earlier


def test_positions_keep_the_width_that_their_table_has() -> None:
    where = HexPositions(0)
    assert HexPositions.form() == "4 or 6 hexadecimal digits"
    assert [where.after("00FF"), where.after("0000FF")] == ["0100", "000100"]
    assert [where.before("0100"), where.before("000100")] == ["00FF", "0000FF"]
    assert where.before("0000") == ""
    assert where.first == "0000"
    # a first load comes before every change, whatever the width
    assert where.first < "0001"
    assert where.first < "000001"
    assert [text for text in ("00FF", "0000FF", "00ff", "00FFF") if where.is_form_of(text)] == [
        "00FF",
        "0000FF",
    ]


def test_the_position_of_a_first_load_is_that_of_no_change_of_qlik() -> None:
    where = QlikChangeSequence("15 minutes")
    assert where.first < where.of_time(datetime.min)
    valid = re.compile(where.valid_pattern())
    assert valid.fullmatch(where.of_time(datetime.min))
    assert not valid.fullmatch(where.first)
    assert not valid.fullmatch("0000" + seq("2026-03-02 08:00:00")[4:])


def test_a_position_behind_the_greatest_one_sorts_behind_it() -> None:
    assert HexPositions(0).after("FFFF") == "FFFF0" > "FFFF"
    assert HexPositions(0).after("FFFE") == "FFFF"


def test_a_clock_that_is_ahead_does_not_end_the_look_back() -> None:
    where = QlikChangeSequence("15 minutes")
    now = datetime.now(timezone.utc)
    ahead = where.of_time(now + timedelta(hours=23))
    for floor in (where.before_look_back(where.up_to_now(ahead)), where.not_read_again(ahead)):
        assert where.of_time(now - timedelta(minutes=16)) < floor < where.of_time(now)
    past = seq("2026-03-02 08:00:00")
    assert where.up_to_now(past) == past
    # numbers have no time
    assert OpenEdgeChangeSequence(10).up_to_now("9" * 19) == "9" * 19


def test_numbered_positions_do_not_contain_the_time() -> None:
    assert OpenEdgeChangeSequence(10).of_time(datetime(2026, 3, 2)) is None


def test_positions_of_a_feed_have_the_width_of_their_parts() -> None:
    where = ChangeFeedSequence(look_back=0)
    assert where.is_form_of("00000000000000FF")
    assert where.is_form_of("00000000000000FF" * 12)
    assert not where.is_form_of("00000000000000ff")
    assert not where.is_form_of("00000000000000F")


@pytest.mark.parametrize("width", ChangeFeedSequence.widths)
def test_loads_of_a_feed_lie_between_its_changes(width: int) -> None:
    """Also where the first change has the position 0, and the last one the greatest."""
    where = ChangeFeedSequence(look_back=0)
    least, next_one, greatest = "0" * width, f"{1:0{width}X}", "F" * width
    first = where.first
    assert first < where.after(first) < where.after(where.after(first)) < least
    assert least < where.after(least) < where.after(where.after(least)) < next_one
    assert greatest < where.after(greatest)
    assert [where.before(least), where.before(next_one)] == ["", least]
    # the last change is read again, and what comes behind a load with it
    for seq in (next_one, where.after(next_one), where.after(where.after(next_one))):
        assert least <= where.not_read_again(seq) < next_one
    for seq in (first, where.after(first), least):
        assert where.not_read_again(seq) < least


def test_soliddb_positions_are_addresses_as_hex_text() -> None:
    where = SolidDbChangeSequence(look_back=0)
    address = "0000000000000001FFFFFFFF0000029500000295"
    assert where.is_form_of(address)
    assert where.is_form_of("000000000000015FFFFFFFFF00000000000006DD00000000000006DD")
    assert not where.is_form_of(address[:-1])
    assert not where.is_form_of(address.lower())
    assert where.after(address) == "0000000000000001FFFFFFFF0000029500000296"
    assert where.before_look_back(address) == address
