"""The demo of PostgreSQL: how it finds the server's programs, and how it reads rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterimage_demo.postgres import server
from afterimage_demo.postgres.server import PostgresError, program, running_server
from afterimage_demo.postgres.tables import TABLES
from afterimage_demo.servers import install_if_missing
from afterimage_demo.systems import SYSTEMS


def install(folder: Path, *versions: str) -> None:
    for version in versions:
        path = folder / version / "bin" / "initdb"
        path.parent.mkdir(parents=True)
        path.touch()


def test_the_newest_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "9.6", "15", "14")
    monkeypatch.setattr(server, "_INSTALLED", tmp_path)
    assert program("initdb") == str(tmp_path / "15" / "bin" / "initdb")


def test_a_missing_server_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PostgresError) as caught, running_server(tmp_path):
        pass
    for part in ("initdb", "Fix:", "apt-get install postgresql", "brew install"):
        assert part in str(caught.value)


def test_nothing_is_installed_when_that_is_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AFTERIMAGE_NO_INSTALL", "1")
    install_if_missing("postgresql", lambda: program("initdb"), PostgresError, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_columns_that_a_table_does_not_have_yet_are_left_out() -> None:
    statement = TABLES["documents"].rows_as_json("documents", ["id", "read_at"])
    assert statement == (
        "select row_to_json(of_row) from (select id as id, "
        "to_char(read_at, 'HH24:MI:SS.US') as read_at from documents) as of_row"
    )


def test_the_demo_builds_all_its_tables() -> None:
    assert SYSTEMS["postgres"].tables == tuple(TABLES)
