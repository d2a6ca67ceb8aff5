"""The demo of MariaDB: a missing server, and what dbt declares of its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from afterimage_demo.mariadb.server import MariaDbError, running_server
from afterimage_demo.mariadb.tables import TABLES, rows_as_json
from afterimage_demo.systems import SYSTEMS

SOURCES = Path(__file__).parents[2] / "demo/models/staging/mariadb/_mariadb__sources.yml"


def test_a_missing_server_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(MariaDbError) as caught, running_server(tmp_path):
        pass
    for part in ("mariadb", "Fix:", "apt-get install mariadb-server"):
        assert part in str(caught.value)


def test_rows_are_read_as_json() -> None:
    assert rows_as_json("wallets") == (
        "select json_object('id', id, 'balance', balance) from wallets"
    )


def test_dbt_declares_the_tables_of_the_database() -> None:
    assert SYSTEMS["mariadb"].tables == tuple(TABLES)
    messages, state = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))["sources"]
    for entries in (messages["tables"][1:], state["tables"]):
        declared = {
            entry["name"]: {column["name"]: column["data_type"] for column in entry["columns"]}
            for entry in entries
        }
        assert declared == {
            name: {column: kind for column, (_, kind, _) in columns.items()}
            for name, columns in TABLES.items()
        }
