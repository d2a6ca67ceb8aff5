"""A snapshot of the catalogue that is landed before the log is landed up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.functional.soliddb_server import Server, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = table("PEOPLE", 500, "ID", "A")
# of a like type: read by the wrong columns, it would be misread silently
AFTER = table("PEOPLE", 500, "ID", "B")


@pytest.fixture
def server(spark: SparkSession, table_format: str) -> Server:
    return Server(spark, table_format, "snapshots")


@pytest.mark.parametrize(
    "landed",
    [
        pytest.param(3, id="without_the_alter"),
        pytest.param(5, id="without_its_commit"),
    ],
)
def test_rows_from_before_an_alter_keep_their_columns(server: Server, landed: int) -> None:
    server.snapshot(BEFORE)
    server.commit((BEFORE, 1, 10))
    server.commit((22, "PEOPLE", 500))
    server.commit((AFTER, 2, 20))
    server.snapshot(AFTER, at=server.log.address)
    log = server.log.rows
    server.log.rows = log[:landed]
    server.run()
    assert server.decoded(["image"]) == [({"ID": "1", "A": "10"},)]
    server.log.rows = log
    server.run()
    rows = server.decoded(["image"], "not is_ddl")
    assert rows == [({"ID": "1", "A": "10"},), ({"ID": "2", "B": "20"},)]


def test_rows_wait_until_the_log_is_landed_up_to_the_snapshot(server: Server) -> None:
    """A second ALTER may be between what is landed and the snapshot."""
    server.snapshot(BEFORE)
    server.commit((22, "PEOPLE", 500))
    server.commit((AFTER, 2, 20))
    landed = server.log.rows
    server.log.rows = []
    server.commit((BEFORE, 3, 30))
    server.snapshot(AFTER, at=server.log.address)
    server.log.rows, missing = landed, server.log.rows
    server.run()
    assert server.decoded(["ddl_code"]) == [(22,)]
    server.log.rows = [*landed, *missing]
    server.run()
    rows = server.decoded(["image"], "not is_ddl")
    assert rows == [({"ID": "2", "B": "20"},), ({"ID": "3", "B": "30"},)]
