"""Schemas of a registry: from its REST interface, and from files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from dbt_afterimage.sources.schema_registry import RegistryError, registered_schema, subject_schemas

SCHEMA = '{"type": "record", "name": "DataRecord", "fields": []}'


class Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answers = {
            "/schemas/ids/7": (200, json.dumps({"schema": SCHEMA})),
            "/schemas/ids/9": (500, ""),
            # version 3 is deleted while they are read
            "/subjects/orders-value/versions": (200, "[1, 2, 3]"),
            "/subjects/orders-value/versions/1": (200, json.dumps({"id": 7, "schema": SCHEMA})),
            "/subjects/orders-value/versions/2": (
                200,
                json.dumps({"id": 9, "schema": "{}", "schemaType": "JSON"}),
            ),
            "/subjects/others-value/versions": (200, "[1]"),
            "/subjects/others-value/versions/1": (
                200,
                json.dumps({"id": 3, "schema": "syntax", "schemaType": "PROTOBUF"}),
            ),
        }
        status, text = answers.get(self.path, (404, '{"error_code": 40403}'))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: object) -> None:
        """Nothing: the console is pytest's."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Registry)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_registry_is_queried_by_id(address: str) -> None:
    assert registered_schema(address + "/", "7") == SCHEMA
    assert registered_schema(address, "8") is None


def test_all_versions_of_a_subject(address: str, tmp_path: Path) -> None:
    found = {7: ("AVRO", SCHEMA), 9: ("JSON", "{}")}
    assert subject_schemas(f"{address}/subjects/orders-value") == found
    for number, (kind, text) in found.items():
        suffix = "avsc" if kind == "AVRO" else "json"
        (tmp_path / f"{number}.{suffix}").write_text(text, encoding="utf-8")
    assert subject_schemas(str(tmp_path)) == found


@pytest.mark.parametrize(("subject", "got"), [("others", "the type PROTOBUF"), ("none", "has no")])
def test_a_subject_that_cannot_be_read(address: str, subject: str, got: str) -> None:
    with pytest.raises(RegistryError, match=rf"{got}.*Allowed: Avro and JSON Schema.*Fix: "):
        subject_schemas(f"{address}/subjects/{subject}-value")


def test_a_registry_that_does_not_answer_stops_the_run(address: str) -> None:
    with pytest.raises(RegistryError, match=r"schemas/ids/9: 500 .* Fix: "):
        registered_schema(address, "9")


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "7.avsc").write_text(SCHEMA, encoding="utf-8")
    assert registered_schema(str(tmp_path), "7") == SCHEMA
    assert registered_schema(str(tmp_path), "8") is None
    with pytest.raises(RegistryError, match="which is not a folder"):
        registered_schema(str(tmp_path / "none"), "7")
