"""Full loads that wait, among decoded messages alone: by dbt, expected rows are by hand."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.forms import data_schema, json_envelope, metadata_message
from dbt_afterimage.sources.qlik_messages import offset_gaps as gaps
from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project
from tests.qlik_messages import change, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "int", "name": "string"}
TABLES = {
    "spelled": "raw_waits",
    "forced": "raw_waits",
    "grown": "raw_waits",
    "whole": "raw_waits",
    "half": "raw_waits",
    "strict": "raw_strict",
    "held": "raw_held",
    "filled": "raw_held",
    "carts": "raw_named",
}


def row(number: int | None, name: str = "Ann") -> dict[str, Any]:
    return {"id": number, "name": name}


class Waiting:
    """A project whose tables are staged only; each test has tables of its own."""

    def __init__(self, project: MessagesProject) -> None:
        self.project = project

    def land(self, table: str, values: list[Any], partition: int = 0) -> None:
        self.project.land(TABLES[table], [Message(table, value, partition) for value in values])

    def purge(self, table: str, offsets: str) -> None:
        raw = f"{TABLES[table]}.messages where topic = '{table}'"
        self.project.spark.sql(f"delete from {raw} and `offset` {offsets}")

    def land_again(self, table: str, values: list[Any]) -> None:
        """The first messages of a table's partition 0, at their own offsets."""
        place = (TABLES[table], table, 0)
        then = self.project.next_offset.pop(place)
        self.land(table, values)
        self.project.next_offset[place] = then

    def decode(self, table: str, *more: str, **variables: Any) -> None:
        self.project.dbt("run", "--select", f"{TABLES[table]}_messages", *more, **variables)

    def found(self, table: str, kind: str) -> list[tuple[Any, ...]]:
        """Load, partition and offset of the messages of a kind."""
        messages = f"{TABLES[table]}_messages where table_name = '{table}' and kind = '{kind}'"
        return self.project.rows(messages, "load_id, partition, `offset`", "1, 2, 3")


@pytest.fixture(scope="module")
def waiting(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> Waiting:
    folder = tmp_path_factory.mktemp("waiting")
    sources = {
        "raw_waits": {"schemas_from": "metadata"},
        "raw_strict": {"on_gap": "fail"},
        "raw_held": {"schemas_from": "metadata"},
        "raw_named": {"table_from": "schema_id", "schemas_from": "metadata"},
    }
    tables = {name: (source, {"key": ["id"]}, COLUMNS) for name, source in TABLES.items()}
    write_project(folder, sources, tables, staged_only=tables)
    project = make_dbt_project(folder, schema="pending_loads")
    return Waiting(MessagesProject(project, spark, table_format))


def metadata_of(table: str, schema_id: str, columns: dict[str, str]) -> bytes:
    lineage = {"schema": "shop", "table": table, "tableVersion": 1}
    schema = data_schema(dict.fromkeys(columns, "string"))
    message = metadata_message(schema_id, lineage, columns, list(columns)[:1], schema)
    return json_envelope(message, "MD")


def test_a_key_may_be_spelled_otherwise_in_messages(waiting: Waiting) -> None:
    """Rows without a key are not copies of each other: each of them is to be rejected."""
    columns = {"ID": "int", "NAME": "string"}

    def upper(message: dict[str, Any]) -> bytes:
        data = {name.upper(): value for name, value in message["data"].items()}
        return json_envelope({**message, "data": data}, schema_id="S1")

    loaded = [row(1), row(2), row(3), row(3, "Amy"), row(None), row(None, "Bob")]
    waiting.land("spelled", [metadata_of("spelled", "S1", columns)])
    waiting.land("spelled", [upper(refresh(values)) for values in loaded])
    waiting.land("spelled", [upper(change("INSERT", 11, row(9)))])
    waiting.decode("spelled", "stg_spelled")
    places = [("spelled-0-1", 0, offset) for offset in (1, 2, 4, 5, 6)]
    assert waiting.found("spelled", "load") == places
    staged = waiting.project.rows("stg_spelled", "id, name, change_oper", "change_oper, id, name")
    assert staged == [
        (9, "Ann", "I"),
        (None, "Ann", "L"),
        (None, "Bob", "L"),
        (1, "Ann", "L"),
        (2, "Ann", "L"),
        (3, "Amy", "L"),
    ]


def test_a_load_waits_for_rows_whose_schema_is_not_there(waiting: Waiting) -> None:
    """By what can be read it is whole: in the partition that has some of it a change has come."""

    def known(message: dict[str, Any], schema_id: str = "S1") -> bytes:
        return json_envelope(message, schema_id=schema_id)

    insert = change("INSERT", 11, row(9))
    waiting.land("held", [metadata_of("held", "S1", COLUMNS)])
    waiting.land("held", [known(refresh(row(1))), known(refresh(row(2))), known(insert)])
    insert = change("INSERT", 12, row(8))
    waiting.land("held", [known(refresh(row(3)), "S9"), known(insert)], partition=1)
    waiting.decode("held")
    assert waiting.found("held", "load") == []
    waiting.land("held", [metadata_of("held", "S9", COLUMNS)])
    waiting.decode("held")
    name = "held-0-1"
    assert waiting.found("held", "load") == [(name, 0, 1), (name, 0, 2), (name, 1, 0)]
    assert waiting.found("held", "rejected") == []


def test_a_message_that_fills_a_hole_waits_for_its_schema(waiting: Waiting) -> None:
    """And is read then, although its offset was passed; until then a run commits nothing."""

    def insert(number: int, schema_id: str = "T1") -> bytes:
        return json_envelope(change("INSERT", number, row(number)), schema_id=schema_id)

    place = ("raw_held", "filled", 0)
    waiting.land("filled", [metadata_of("filled", "T1", COLUMNS), insert(1)])
    waiting.project.next_offset[place] = 3
    waiting.land("filled", [insert(3)])
    waiting.decode("filled")
    waiting.project.next_offset[place] = 2
    waiting.land("filled", [insert(2, "T2")])
    commits = []
    for _ in range(2):
        waiting.decode("filled")
        commits.append(waiting.project.rows("afterimage_progress", "count(*)"))
        assert waiting.found("filled", "change") == [(None, 0, 1), (None, 0, 3)]
    assert commits[0] == commits[1]
    waiting.project.next_offset[place] = 4
    waiting.land("filled", [metadata_of("filled", "T2", COLUMNS)])
    waiting.decode("filled")
    assert waiting.found("filled", "change") == [(None, 0, offset) for offset in (1, 2, 3)]


def test_loads_that_follow_a_forced_one_are_recorded(waiting: Waiting) -> None:
    """`complete_load` speaks of what is there, not of what comes behind it."""
    for table in ("forced", "grown"):
        waiting.land(table, [refresh(row(1)), refresh(row(2))])
    waiting.decode("forced", complete_load=["forced", "grown"])
    reload = [refresh(row(1)), refresh(row(3)), change("INSERT", 6, row(4))]
    waiting.land("forced", [change("INSERT", 5, row(9)), *reload])
    waiting.land("grown", [refresh(row(3)), change("INSERT", 5, row(9))])
    waiting.decode("forced")
    waiting.decode("forced", complete_load=["forced", "grown"])
    first = [("forced-0-0", 0, 0), ("forced-0-0", 0, 1)]
    assert waiting.found("forced", "load") == [*first, ("forced-0-3", 0, 3), ("forced-0-3", 0, 4)]
    assert waiting.found("forced", "rejected") == []
    # behind what was recorded, and no change between: what the load was said to be without
    assert waiting.found("grown", "load") == [("grown-0-0", 0, 0), ("grown-0-0", 0, 1)]
    assert waiting.found("grown", "rejected") == [(None, 0, 2)]


def test_a_load_of_which_messages_are_purged_waits_on(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(gaps, "logger", SimpleNamespace(warning=warnings.append))
    load = [refresh(row(1)), refresh(row(2))]
    for table in ("whole", "half"):
        waiting.land(table, load)
    waiting.decode("whole")
    waiting.purge("whole", "< 2")
    waiting.purge("half", "< 1")
    for table in ("whole", "half"):
        waiting.land(table, [change("INSERT", 11, row(9))])
    waiting.decode("whole")
    found = {table: waiting.found(table, "load") for table in ("whole", "half")}
    assert found == {"whole": [], "half": []}
    for told in ("whole-0 from 0 to 1 (0 of 2 are there)", "half-0 from 0 to 1 (1 of 2 are there)"):
        assert len([text for text in warnings if told in text and "waits on" in text]) == 1

    waiting.land_again("whole", load)
    waiting.land_again("half", load[:1])
    waiting.land("whole", [change("INSERT", 12, row(8))])
    waiting.decode("whole")
    assert waiting.found("whole", "load") == [("whole-0-0", 0, 0), ("whole-0-0", 0, 1)]
    assert waiting.found("half", "load") == [("half-0-0", 0, 0), ("half-0-0", 0, 1)]


def test_a_load_of_which_messages_are_purged_stops_the_run(waiting: Waiting) -> None:
    """With `on_gap: fail`, until the user gives it up; and so it does a rebuild."""
    waiting.land("strict", [refresh(row(1)), refresh(row(2))])
    waiting.decode("strict")
    waiting.purge("strict", "< 1")
    only = ("run", "--select", "raw_strict_messages")
    message = waiting.project.dbt.error_of(*only, rebuild_changes=True)
    for part in ("`rebuild_changes` is set", "full load of strict", "strict-0 from 0 to 1"):
        assert part in message
    waiting.land("strict", [change("INSERT", 11, row(9))])
    message = waiting.project.dbt.error_of(*only)
    for part in (
        "full load of strict",
        "strict-0 from 0 to 1 (1 of 2 are there)",
        "`on_gap` is 'fail'",
        "Nothing was written",
        "accept_gap",
    ):
        assert part in message
    assert waiting.found("strict", "change") == []
    waiting.decode("strict", accept_gap=True)
    reload = [refresh(row(1)), change("INSERT", 12, row(8))]
    waiting.land("strict", reload)
    waiting.decode("strict")
    assert waiting.found("strict", "load") == [("strict-0-3", 0, 3)]
    assert waiting.found("strict", "rejected") == []
    assert waiting.found("strict", "change") == [(None, 0, 2), (None, 0, 4)]
    # it would make a load of what is left of the one that was given up
    message = waiting.project.dbt.error_of(*only, rebuild_changes=True)
    assert "lacks 1 messages that were decoded from it, of the full load of strict" in message


def test_complete_load_speaks_of_tables_of_all_sources(waiting: Waiting) -> None:
    """Of whatever schema, where none is set; and models of other sources go on."""
    # the raw tables of the other sources are there
    waiting.land("whole", [metadata_of("whole", "S9", COLUMNS)])
    waiting.land("strict", [change("INSERT", 13, row(7))])
    waiting.land("carts", [metadata_of("carts", "S2", COLUMNS)])
    waiting.land("carts", [json_envelope(refresh(row(1)), schema_id="S2")])
    models = ("raw_waits_messages", "raw_strict_messages")
    waiting.decode("carts", *models, complete_load="carts")
    assert waiting.found("carts", "load") == [("carts-0-1", 0, 1)]
