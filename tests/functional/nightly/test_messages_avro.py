"""Metadata messages, and messages as Avro: in the Qlik envelope, and by a schema registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.avro import encode
from afterimage_demo.kafka.forms import avro_registered
from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "data" / "qlik_messages"
SALARIES = "8FB9D3C10EA4B25751DF9CC8318F0A02"
START = "0" * 35
CARTS = {
    "cart_id": "int",
    "total": "decimal(9,2)",
    "ordered_on": "date",
    "paid_at": "timestamp",
    "token": "binary",
    "is_gift": "boolean",
}
# Ids of schemas of other applications, in the registry.
FOREIGN = range(20, 28)


def example(name: str) -> Any:
    return json.loads((EXAMPLES / name).read_text(encoding="utf-8"))


def seq(number: int) -> str:
    return f"2026030212000000{number:019d}"


def headers(operation: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "operation": operation, "changeSequence": seq(number),
        "timestamp": "2026-03-02T12:00:00.000", "streamPosition": "0", "transactionId": "t",
        "changeMask": None, "columnMask": None, **more,
    }  # fmt: skip


def salary(number: int, amount: int, until: str) -> dict[str, Any]:
    return {"emp_no": number, "salary": amount, "from_date": "2026-01-01", "to_date": until}


def envelope(message: bytes, kind: str = "DT", **more: Any) -> bytes:
    given = {"magic": b"atMSG", "type": kind, "headers": None, "messageSchemaId": None}
    value = {**given, "messageSchema": None, "message": message, **more}
    return encode(example("envelope.avsc"), value)


def with_bonus() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The next version of the table: Avro schema, metadata message, its Avro schema.

    Another column was added and dropped in between: its ordinal, 3, stays empty.
    """
    data = example("data_record.avsc")
    fields = data["fields"][0]["type"]["fields"]
    fields.insert(1, {"name": "bonus", "type": ["null", "long"]})
    message = example("metadata.json")["message"]
    columns = message["tableStructure"]["tableColumns"]
    for name in ("salary", "from_date", "to_date"):
        columns[name]["ordinal"] += 2
    of_bonus = {"ordinal": 2, "type": "INT8", "length": 0, "precision": 0, "scale": 0}
    columns["bonus"] = {**of_bonus, "primaryKeyPosition": 0, "nullable": True}
    message["schemaId"] = "V2"
    message["lineage"]["tableVersion"] = 2
    message["dataSchema"] = json.dumps(data)
    schema = example("metadata_record.avsc")
    structure = next(field for field in schema["fields"] if field["name"] == "tableStructure")
    of_columns = structure["type"]["fields"][0]["type"]["fields"]
    bonus = json.loads(json.dumps(of_columns[1]).replace("salary", "bonus"))
    of_columns.append(bonus)
    return data, message, schema


class Story:
    """Data messages come before their metadata; then the table gains a column."""

    def __init__(self, project: MessagesProject, folder: Path) -> None:
        self.project = project
        first = example("data_record.avsc")
        insert = {"data": salary(1, 10, "2026-12-31"), "beforeData": None,
                  "headers": headers("INSERT", 1, columnMask=b"\x0f")}  # fmt: skip
        gone = {"data": {"emp_no": 1}, "headers": headers("INSERT", 9)}
        enveloped = {"magic": "atMSG", "type": "DT", "messageSchemaId": "GONE", "message": gone}
        project.land(
            "raw_ids",
            [
                Message("data", example("row_of_a_full_load.json")),
                Message("data", envelope(encode(first, insert), messageSchemaId=SALARIES)),
                # its metadata never comes
                Message("data", enveloped, partition=1),
            ],
        )
        self.registry(folder)
        project.dbt("build")
        self.decoded_at_first = project.rows("raw_ids_messages", "count(*)")

        second, metadata, of_metadata = with_bonus()
        before = {**salary(1, 10, "2026-12-31"), "bonus": None}
        masks = {"changeMask": b"\x0a", "columnMask": b"\x3b"}
        update = {"data": {**before, "bonus": 5, "salary": None}, "beforeData": before,
                  "headers": headers("UPDATE", 2, **masks)}  # fmt: skip
        nothing: dict[str, Any] = dict.fromkeys(before)
        delete = {"data": nothing, "beforeData": {**before, "bonus": 5, "salary": None},
                  "headers": headers("DELETE", 3)}  # fmt: skip
        project.land(
            "raw_ids",
            [
                Message("metadata", example("metadata.json")),
                Message("metadata", example("metadata.json")),
                Message(
                    "metadata",
                    envelope(encode(of_metadata, metadata), "MD", messageSchemaId="V2",
                             messageSchema=json.dumps(of_metadata)),
                ),
                Message("data", envelope(encode(second, update), messageSchemaId="V2")),
                # the schema comes along
                Message("data", envelope(encode(second, delete), messageSchemaId="V2",
                                         messageSchema=json.dumps(second))),
                Message("data", envelope(b"\x80", messageSchemaId="V2")),
                Message("data", b"atMSG\x04"),
            ],
            minutes=60,
        )  # fmt: skip
        project.dbt("build")

    def registry(self, folder: Path) -> None:
        """Messages in the wire format, with logical types; the table is in a record header."""
        schema = example("registered_data_record.avsc")
        schema["fields"][0]["type"]["fields"] = [
            {"name": "cart_id", "type": "int"},
            {"name": "total", "type": ["null", {"type": "bytes", "logicalType": "decimal",
                                                "precision": 9, "scale": 2}]},
            {"name": "ordered_on", "type": {"type": "int", "logicalType": "date"}},
            {"name": "paid_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "token", "type": ["null", "bytes"]},
            {"name": "is_gift", "type": "boolean"},
        ]  # fmt: skip
        (folder / "7.avsc").write_text(json.dumps(schema), encoding="utf-8")
        row = {"cart_id": 1, "total": (12345).to_bytes(2, "big"), "ordered_on": 20514,
               "paid_at": 1_772_452_800_123_456, "token": b"\x00\xff", "is_gift": True}  # fmt: skip
        counters = {"transactionEventCounter": 3, "transactionLastEvent": True}
        self.foreign_schemas(folder)
        # the least significant byte of a mask comes first: columns 1 to 6
        value = {"data": row, "beforeData": None,
                 "headers": headers("INSERT", 5, changeMask=b"\x3f\x00", **counters)}  # fmt: skip
        data = encode(schema, value)
        of_cart = {"entity": "carts"}
        self.project.land(
            "raw_registry",
            [
                Message("shop", avro_registered(7, data), headers=of_cart),
                Message("shop", avro_registered(0x63, data), headers=of_cart),
                Message("shop", avro_registered(7, b"\x02"), headers=of_cart),
                Message("shop", avro_registered(7, data)),
                Message("shop", None, headers=of_cart),
                *[
                    Message("shop", avro_registered(number, data), headers={"entity": "others"})
                    for number in FOREIGN
                ],
            ],
        )

    def foreign_schemas(self, folder: Path) -> None:
        """What other applications register, some of it with fields of the vendor's names."""

        def record(name: str, **fields: Any) -> dict[str, Any]:
            of = [{"name": field, "type": kind} for field, kind in fields.items()]
            return {"type": "record", "name": name, "fields": of}

        texts = {"type": "map", "values": "string"}
        empty = record("Empty")
        columns = record("Columns", id=record("Column", ordinal="int"))
        of_columns = record("Structure", tableColumns=columns)
        metadata = {"schemaId": "string", "lineage": empty, "tableStructure": of_columns}
        event = {"transactionEventCounter": texts}
        schemas: list[Any] = [
            record("Event", headers=texts, data="bytes"),
            record("Event", headers=record("Headers", operation="string"), data="string"),
            record("Event", headers=record("Headers", **event), data=record("Data", id="int")),
            # without `dataSchema`
            record("Table", **metadata),
            record("Table", schemaId="string", tableStructure="string"),
            record("Table", **{**metadata, "dataSchema": "string", "lineage": "string"}),
            {"type": "object", "properties": {"id": {"type": "integer"}}},
        ]
        files = [json.dumps(schema) for schema in schemas]
        files.append('syntax = "proto3"; message Event { string id = 1; }')
        for number, text in zip(FOREIGN, files, strict=True):
            (folder / f"{number}.avsc").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def story(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> Story:
    folder = tmp_path_factory.mktemp("avro")
    schemas = tmp_path_factory.mktemp("schemas")
    write_project(
        folder,
        {
            "raw_ids": {"table_from": "schema_id", "schemas_from": "metadata"},
            "raw_registry": {
                "table_from": "header",
                "table_header": "entity",
                "schemas_from": "registry",
                "schema_registry": str(schemas),
            },
        },
        {
            # what holds until the first metadata message comes
            "salaries": (
                "raw_ids",
                {"key": ["emp_no", "from_date"]},
                {"emp_no": "int", "salary": "int", "from_date": "date", "to_date": "date"},
            ),
            "carts": ("raw_registry", {"key": ["cart_id"]}, CARTS),
        },
        staged_only=["carts"],
    )
    project = make_dbt_project(folder, schema="avro_messages")
    return Story(MessagesProject(project, spark, table_format), schemas)


def test_messages_wait_for_their_metadata(story: Story) -> None:
    assert story.decoded_at_first == [(0,)]


def test_each_message_is_decoded_by_its_own_version(story: Story) -> None:
    columns = "change_oper, change_seq, emp_no, salary, from_date, bonus, known_columns"
    first, day = ["emp_no", "salary", "from_date", "to_date"], date(2026, 1, 1)
    rows = story.project.rows("stg_salaries", columns, "change_seq nulls last, change_oper")
    assert [(*row[:6], row[6] and sorted(row[6])) for row in rows] == [
        ("L", START, 14472, 49592, date(1993, 11, 25), None, sorted(first)),
        ("I", seq(1), 1, 10, day, None, sorted(first)),
        ("B", seq(2), 1, 10, day, None, None),
        ("U", seq(2), 1, None, day, 5, None),
        ("D", seq(3), 1, None, day, 5, None),
        # wrong Avro
        (None, None, None, None, None, None, None),
    ]
    # bits 1 and 3 are ordinals 2 and 4 of the version by which the message was written
    declared = story.project.rows(
        "stg_salaries where change_oper = 'U'", "declared_changed_columns"
    )
    assert declared == [(["bonus", "salary"],)]


def test_a_column_that_the_source_gains_reaches_history(story: Story) -> None:
    rows = story.project.rows(
        "salaries_history", "emp_no, salary, bonus, opened_by, closed_by, unknown_columns",
        "emp_no, valid_from_seq",
    )  # fmt: skip
    assert rows == [
        # not known when the row was inserted
        (1, 10, None, "I", "U", ["bonus"]),
        (1, None, 5, "U", "D", None),
        (14472, 49592, None, "L", None, ["bonus"]),
    ]


def test_schemas_are_one_row_per_id_and_column(story: Story) -> None:
    rows = story.project.rows(
        "raw_ids_schemas",
        "table_version, ordinal, schema_id, table_schema, table_name, column_name, data_type, "
        "key_position, is_nullable",
        "1, 2",
    )
    salaries = (SALARIES, "employees", "salaries")
    assert rows == [
        (1, 1, *salaries, "emp_no", "INT4", 1, False),
        (1, 2, *salaries, "salary", "INT4", None, False),
        (1, 3, *salaries, "from_date", "DATE", 2, False),
        (1, 4, *salaries, "to_date", "DATE", None, False),
        (2, 1, "V2", "employees", "salaries", "emp_no", "INT4", 1, False),
        (2, 2, "V2", "employees", "salaries", "bonus", "INT8", None, True),
        (2, 4, "V2", "employees", "salaries", "salary", "INT4", None, False),
        (2, 5, "V2", "employees", "salaries", "from_date", "DATE", 2, False),
        (2, 6, "V2", "employees", "salaries", "to_date", "DATE", None, False),
    ]


def test_schemas_keep_where_their_metadata_comes_from(story: Story) -> None:
    lineage = "server_name, task_name, metadata_timestamp"
    rows = story.project.rows("raw_ids_schemas", f"distinct {lineage}")
    at = datetime(2018, 4, 13, 20, 13, 58, 289_000)
    assert rows == [("attunity-01.custenborder.com", "mysql-to-kafka", at)]


def test_what_belongs_to_no_table_is_kept_with_a_reason(story: Story) -> None:
    rejected = "raw_ids_messages where kind = 'rejected'"
    assert story.project.rows(rejected, "reject_reason, table_name, reject_detail", "2, 3") == [
        ("malformed_message", None, "no Avro envelope of a message"),
        ("unknown_schema", None, "schema id GONE is not known"),
        ("malformed_message", "salaries", "its bytes are not a message by its Avro schema"),
    ]
    raw = story.project.rows(f"{rejected} and table_name is null", "raw_value", "1")
    assert len(raw) == 2
    assert raw[0] == ("atMSG\x04",)


def test_the_wire_format_of_a_registry(story: Story) -> None:
    rows = story.project.rows(
        "stg_carts",
        "change_oper, reject_reason, cart_id, total, ordered_on, paid_at, token, is_gift, "
        "declared_changed_columns, transaction_event",
        "change_seq nulls last, reject_reason, change_oper",
    )
    paid_at = datetime(2026, 3, 2, 12, 0, 0, 123456)
    nothing = (None,) * 6
    assert [(*row[:6], row[6] and bytes(row[6]), *row[7:]) for row in rows] == [
        (
            "I",
            None,
            1,
            Decimal("123.45"),
            date(2026, 3, 2),
            paid_at,
            b"\x00\xff",
            True,
            [*CARTS],
            3,
        ),
        ("N", None, *nothing, None, None),
        (None, "malformed_message", *nothing, None, None),
        (None, "unknown_schema", *nothing, None, None),
    ]
    lost = "raw_registry_messages where table_name is null"
    assert story.project.rows(lost, "reject_reason, reject_detail") == [
        ("malformed_message", "no record header `entity` identifies its table")
    ]


def test_messages_by_schemas_of_other_applications_are_rejected(story: Story) -> None:
    """And nothing but them: no table waits for them."""
    others = "raw_registry_messages where table_name = 'others'"
    rows = story.project.rows(others, "kind, reject_reason, reject_detail, schema_id", "schema_id")
    problem = "its bytes are not a message by its Avro schema"
    assert rows == [("rejected", "malformed_message", problem, str(number)) for number in FOREIGN]
