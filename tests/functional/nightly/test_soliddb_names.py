"""Tables that share a name, one after the other or in two schemas: whose rows a DDL record closes.

A staged row is (change_oper, key). DDL codes: 45 create, 17 drop, 47 rename, 22 alter, 73 truncate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.sources.soliddb.raw import RawLogError
from tests.functional.soliddb_server import Server, table
from tests.macro_renderer import CompilationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEOPLE = table("PEOPLE", 500)
RECREATED = table("PEOPLE", 600)
IN_THE_PLACE = table("PEOPLE_NEW", 600)


@pytest.fixture
def server(spark: SparkSession, table_format: str, request: pytest.FixtureRequest) -> Server:
    return Server(spark, table_format, request.node.originalname)


def test_a_drop_of_the_renamed_table_leaves_the_rows_of_the_new_one(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((47, "BRANCH.PEOPLE_OLD", 500))
    server.commit((45, 'BRANCH."PEOPLE"', 600))
    server.commit((RECREATED, 2))
    # it is another table by now
    server.commit((PEOPLE, 3), (73, "PEOPLE_OLD", 500))
    server.commit((17, "PEOPLE_OLD", 500))
    server.snapshot(RECREATED, at=server.log.address)
    server.run()
    assert server.staged("PEOPLE") == [
        ("I", 1),
        ("N", None),
        ("T", None),
        ("I", 2),
        ("N", 3),
        ("N", None),
        ("N", None),
    ]


def test_a_renamed_table_is_closed_though_the_catalogue_still_has_it(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((47, "BRANCH.PEOPLE_OLD", 500))
    server.commit((45, "BRANCH.PEOPLE", 600))
    server.commit((RECREATED, 2))
    server.snapshot(table("PEOPLE_OLD", 500), RECREATED, at=server.log.address)
    server.run()
    assert server.staged("PEOPLE") == [("I", 1), ("N", None), ("T", None), ("I", 2)]
    assert server.staged("PEOPLE", relation_id=600) == [("N", None), ("I", 2)]


def test_a_table_that_is_renamed_back_stops(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((47, "BRANCH.PEOPLE_OLD", 500))
    server.commit((45, "BRANCH.PEOPLE", 600))
    server.commit((RECREATED, 2))
    server.snapshot(table("PEOPLE_OLD", 500), RECREATED, at=server.log.address)
    server.commit((17, "PEOPLE", 600))
    server.commit((47, "BRANCH.PEOPLE", 500))
    server.commit((PEOPLE, 3))
    server.snapshot(PEOPLE, at=server.log.address)
    server.run()
    with pytest.raises(CompilationError, match=r"renamed back\. Fix: set `relation_id`"):
        server.staged("PEOPLE")
    staged = server.staged("PEOPLE", relation_id=500)
    assert [row for row in staged if row[0] != "N"] == [("I", 1), ("I", 3)]


def test_a_table_that_is_dropped_and_recreated_is_closed_once(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((17, "PEOPLE", 500))
    server.commit((45, "BRANCH.PEOPLE", 600))
    server.commit((RECREATED, 2))
    server.snapshot(RECREATED, at=server.log.address)
    server.run()
    assert server.staged("PEOPLE") == [("I", 1), ("T", None), ("N", None), ("I", 2)]


def test_a_table_recreated_waits_until_the_catalogue_has_its_id(server: Server) -> None:
    """Read before that, its CREATE would never close the rows of the older table."""
    server.snapshot(PEOPLE)
    server.commit((47, "BRANCH.PEOPLE_OLD", 500))
    server.commit((45, "BRANCH.OTHER", 590))
    server.commit((45, "BRANCH.PEOPLE", 600))
    server.commit((PEOPLE, 3))
    server.run()
    assert server.decoded(["ddl_code", "relation_id"]) == [(47, 500), (45, 590)]
    server.snapshot(RECREATED, at=server.log.address)
    server.run()
    assert server.staged("PEOPLE") == [("N", None), ("T", None), ("N", 3)]


def test_a_table_that_was_filled_under_another_name_stops(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((45, "BRANCH.PEOPLE_NEW", 600))
    server.snapshot(PEOPLE, IN_THE_PLACE, at=server.log.address)
    server.commit((IN_THE_PLACE, 2))
    server.commit((17, "PEOPLE", 500))
    server.commit((47, "BRANCH.PEOPLE", 600))
    server.snapshot(RECREATED, at=server.log.address)
    server.run()
    with pytest.raises(CompilationError) as caught:
        server.staged("PEOPLE")
    message = str(caught.value)
    assert "table PEOPLE, which source table raw.PEOPLE names, with the ids 500, 600" in message
    assert "it has records of 500 after the first one of 600. Fix: set `relation_id`" in message
    assert server.staged("PEOPLE", relation_id=500) == [("I", 1), ("T", None)]
    assert server.staged("PEOPLE", relation_id=600) == [("N", None), ("I", 2), ("N", None)]


def test_one_table_after_the_other_needs_no_create(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((PEOPLE, 1))
    server.commit((17, "PEOPLE", 500))
    server.commit((IN_THE_PLACE, 2))
    server.snapshot(RECREATED, at=server.log.address)
    server.run()
    assert server.staged("PEOPLE") == [("I", 1), ("T", None), ("I", 2)]


@pytest.mark.parametrize("code", [17, 22, 73])
def test_ddl_of_a_name_that_no_snapshot_has_waits(server: Server, code: int) -> None:
    server.snapshot(PEOPLE)
    server.commit((47, "BRANCH.PERSONS", 500))
    server.commit((code, "PERSONS", None))
    server.commit((PEOPLE, 3))
    server.run()
    assert server.decoded(["ddl_code", "relation_id"]) == [(47, 500)]
    server.snapshot(table("PERSONS", 500), at=server.log.address)
    server.run()
    assert server.decoded(["ddl_code", "relation_id"]) == [(47, 500), (code, 500), (None, 500)]


def test_rows_that_are_decoded_already_wait_for_such_ddl_too(server: Server) -> None:
    server.snapshot(PEOPLE)
    server.commit((73, "PERSONS", None))
    server.log.rows[1]["data"] = b'{"LOGRECID": 73, "INFO": "PERSONS"}'
    server.run(framing="decoded")
    assert server.decoded(["ddl_code"]) == []
    server.snapshot(table("PERSONS", 500), at=server.log.address)
    server.run(framing="decoded")
    assert server.decoded(["ddl_code", "relation_id"]) == [(73, 500)]


def test_a_bare_name_that_two_schemas_have_stops(server: Server) -> None:
    server.snapshot(PEOPLE, schema="A")
    server.snapshot(RECREATED, schema="B")
    server.commit((73, "A.PEOPLE", None))
    server.commit((73, "PEOPLE", 600))
    server.run()
    assert server.decoded(["relation_id"]) == [(500,), (600,)]
    server.commit((73, "PEOPLE", None))
    with pytest.raises(RawLogError) as caught:
        server.run()
    message = str(caught.value)
    assert "(truncate table PEOPLE) has no RELID" in message
    assert "has a table of that name in the schemas A, B: which of them it concerns" in message
    assert "Nothing was written. Fix: give the record the RELID of its table" in message


def test_a_bare_name_means_the_table_that_is_left(server: Server) -> None:
    server.snapshot(PEOPLE, schema="A")
    server.snapshot(RECREATED, schema="B")
    server.commit((17, "PEOPLE", 600))
    server.snapshot(PEOPLE, at=server.log.address, schema="A")
    server.commit((73, "PEOPLE", None))
    server.run()
    assert server.decoded(["ddl_code", "relation_id"]) == [(17, 600), (73, 500)]
