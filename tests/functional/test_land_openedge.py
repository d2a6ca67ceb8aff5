"""Extraction of OpenEdge's tables over JDBC, from another database that has the same tables.

Apache Derby, in memory, whose jar comes with Spark: real JDBC, quoted names with hyphens, binary
field maps. That OpenEdge's own driver does the same is not tested; docs/openedge.md says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
URL = "jdbc:derby:memory:plant;create=true"
DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
CREATE = """
create schema "PUB";
create table "PUB"."_Cdc-Change-Tracking" (
    "_Policy-Id" char(22), "_Tran-Id" integer, "_Time-Stamp" timestamp,
    "_Change-Sequence" bigint, "_Operation" integer, "_Change-FieldMap" varchar(256) for bit data,
    "_Source-Table-Number" integer, "_User-Misc" varchar(8));
create table "PUB"."CDC_Work-Order" (
    "_Tran-Id" integer, "_Time-Stamp" timestamp, "_Change-Sequence" bigint,
    "_Continuation-Position" integer, "_ArrayIndex" integer, "_Fragment" integer,
    "_Operation" integer, "order-num" integer, "amount" decimal(20,2), "days" varchar(100))
"""
CREATE_ITEMS = """
create table "PUB"."CDC_Item" ("_Time-Stamp" timestamp, "_Change-Sequence" bigint,
    "_Operation" integer, "_Continuation-Position" integer, "item" integer)
"""
CHANGE_COLUMNS = (
    '"_Tran-Id", "_Time-Stamp", "_Change-Sequence", "_Continuation-Position", "_ArrayIndex", '
    '"_Fragment", "_Operation", "order-num", "amount", "days"'
)


class Plant:
    """The database, through JDBC itself."""

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None
        self._manager = spark._jvm.java.sql.DriverManager
        self._class = spark._jvm.java.lang.Class.forName(DRIVER)

    def run(self, *statements: str) -> None:
        with self._connection() as connection:
            for statement in statements:
                connection.createStatement().execute(statement)

    def capture(
        self,
        sequence: int,
        operation: int,
        order: int,
        number: int = 12,
        policy: str = "policy",
        day: int = 2,
    ) -> None:
        """What the triggers write for one change."""
        shared = f"{sequence}, timestamp('2026-03-0{day} 12:00:00'), {sequence}"
        stored = "x'07'" if operation == 4 else "null"
        self.run(
            f"""insert into "PUB"."_Cdc-Change-Tracking" values
                ('{policy}', {shared}, {operation}, {stored}, {number}, null)"""
        )
        if number == 12:
            self.run(
                f"""insert into "PUB"."CDC_Work-Order" ({CHANGE_COLUMNS}) values
                    ({shared}, 0, 0, 0, {operation}, {order}, 123456789012345678.25, 'mon;tue')"""
            )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        connection = self._manager.getConnection(URL)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def java_in(spark: SparkSession, zone: str) -> Iterator[None]:
    """Java's own time zone, which is not that of the session."""
    assert spark._jvm is not None
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        yield
    finally:
        zones.setDefault(before)


@pytest.fixture(scope="module")
def plant(spark: SparkSession) -> Plant:
    plant = Plant(spark)
    plant.run(*CREATE.split(";"), CREATE_ITEMS)
    return plant


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject], tmp_path_factory: pytest.TempPathFactory
) -> DbtProject:
    """A project that declares the tables: two of them captured, one at level 1."""
    folder = tmp_path_factory.mktemp("landing")
    (folder / "models").mkdir()
    (folder / "macros").symlink_to(ROOT / "macros", target_is_directory=True)
    tables = [
        {"name": "_Cdc-Change-Tracking", "identifier": "cdc_change_tracking"},
        {
            "name": "CDC_Item",
            "identifier": "cdc_item",
            "config": {"meta": {"afterimage": {"table_number": 14, "key": ["item"]}}},
        },
        {
            "name": "CDC_Work-Order",
            "identifier": "cdc_work_order",
            "config": {
                "meta": {
                    "afterimage": {"table_number": 12, "key": ["order-num"], "arrays": ["days"]}
                }
            },
        },
        {
            "name": "CDC_Operator",
            "identifier": "cdc_operator",
            "config": {"meta": {"afterimage": {"table_number": 13, "policy_level": 1}}},
        },
    ]
    meta = {"afterimage": {"system": "openedge", "look_back": 5}}
    source = {"name": "plant", "schema": "landed", "config": {"meta": meta}, "tables": tables}
    files = {
        "dbt_project.yml": {
            "name": "afterimage",
            "profile": "afterimage",
            "macro-paths": ["macros"],
            "models": {"afterimage": {"+materialized": "staging_view"}},
        },
        "models/sources.yml": {"version": 2, "sources": [source]},
    }
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    (folder / "models" / "stg_work_orders.sql").write_text(
        "{{ stage_openedge('plant', 'CDC_Work-Order', tracking='_Cdc-Change-Tracking') }}\n",
        encoding="utf-8",
    )
    return make_dbt_project(folder, schema="landing")


def landing(source_name: str = "plant") -> list[str]:
    options = {
        "url": URL,
        "driver": DRIVER,
        "sessionInitStatement": "set current isolation = read committed",
    }
    arguments = {"source_name": source_name, "options": options, "owner": "PUB"}
    return ["run-operation", "land_openedge", "--args", yaml.safe_dump(arguments)]


def extract(project: DbtProject) -> None:
    project(*landing())


def landed(spark: SparkSession) -> dict[str, list[int]]:
    """The sequences of each landed table, as often as they are there."""
    tables = {name: f"landed.cdc_{name}" for name in ("change_tracking", "work_order")}
    return {
        name: sorted(row[0] for row in spark.table(table).select("`_Change-Sequence`").collect())
        for name, table in tables.items()
    }


def test_extracts(spark: SparkSession, plant: Plant, project: DbtProject) -> None:
    for sequence in (10, 11, 20):
        plant.capture(sequence, 1, sequence)
    plant.capture(7, 1, 7, number=13)
    # a table that no policy of the source captures is left out
    plant.capture(30, 1, 30, number=99)
    extract(project)
    assert landed(spark) == {
        "change_tracking": [7, 10, 11, 20],
        "work_order": [10, 11, 20],
    }

    # names and types are kept, and a time is added
    fields = {
        field.name: field.dataType.simpleString()
        for field in spark.table("landed.cdc_work_order").schema
    }
    assert [*fields] == [
        "_Tran-Id",
        "_Time-Stamp",
        "_Change-Sequence",
        "_Continuation-Position",
        "_ArrayIndex",
        "_Fragment",
        "_Operation",
        "order-num",
        "amount",
        "days",
        "_landed_at",
    ]
    assert (fields["amount"], fields["_Change-Sequence"]) == ("decimal(20,2)", "bigint")
    tracking = spark.table("landed.cdc_change_tracking").schema
    assert tracking["_Change-FieldMap"].dataType.simpleString() == "binary"

    # nothing new: nothing is landed again, although the extract reaches back
    extract(project)
    assert landed(spark)["change_tracking"] == [7, 10, 11, 20]

    # a lower sequence becomes visible late, within the overlap; another one lies too far back
    plant.capture(16, 4, 16)
    plant.capture(12, 1, 12)
    plant.capture(31, 2, 20)
    extract(project)
    assert landed(spark) == {
        "change_tracking": [7, 10, 11, 16, 20, 31],
        "work_order": [10, 11, 16, 20, 31],
    }

    project("run", "--select", "stg_work_orders")
    staged = {
        row["change_seq"].lstrip("0"): row
        for row in spark.table("landing.stg_work_orders").collect()
    }
    assert staged["10"]["change_oper"] == "I"
    assert staged["10"]["days"] == ["mon", "tue"]
    assert str(staged["10"]["amount"]) == "123456789012345678.25"
    assert staged["31"]["change_oper"] == "D"
    assert staged["10"]["arrival"] < staged["31"]["arrival"]


def test_times_without_a_zone_do_not_depend_on_java_s(
    spark: SparkSession, plant: Plant, project: DbtProject
) -> None:
    plant.capture(32, 1, 32)
    with java_in(spark, "Europe/Berlin"):
        extract(project)
    for table in ("cdc_change_tracking", "cdc_work_order"):
        of_change = spark.table(f"landed.{table}").where("`_Change-Sequence` = 32")
        (row,) = of_change.selectExpr("cast(`_Time-Stamp` as string)").collect()
        assert row[0] == "2026-03-02 12:00:00"


def test_a_new_field_and_a_table_that_is_gone(
    spark: SparkSession, plant: Plant, project: DbtProject
) -> None:
    """The field becomes a column; the table that cannot be read keeps no other from landing."""
    plant.run(
        'alter table "PUB"."CDC_Work-Order" add column "note" varchar(10)',
        'drop table "PUB"."CDC_Item"',
    )
    plant.capture(33, 1, 33)
    plant.run("""update "PUB"."CDC_Work-Order" set "note" = 'new'""")
    before = landed(spark)
    message = project.error_of(*landing())
    plant.run(CREATE_ITEMS)
    for part in ("table CDC_Item", "landed.cdc_item", "Fix: ", "landed.cdc_work_order: 1"):
        assert part in message
    assert landed(spark) == {name: [*sequences, 33] for name, sequences in before.items()}
    notes = spark.table("landed.cdc_work_order").select("`_Change-Sequence`", "note").collect()
    assert sorted(map(tuple, notes)) == [(n, None) for n in before["work_order"]] + [(33, "new")]


@pytest.mark.nightly
def test_a_policy_that_restarts(spark: SparkSession, plant: Plant, project: DbtProject) -> None:
    """Its sequences are far behind those that were landed, and no extract would reach them."""
    plant.capture(40, 1, 40)
    extract(project)
    # the old policy's rows are purged: numbers are unique in the database
    plant.run('delete from "PUB"."_Cdc-Change-Tracking"', 'delete from "PUB"."CDC_Work-Order"')
    for sequence in (1, 2, 31):
        plant.capture(sequence, 1, sequence, policy="second", day=3)
    plant.capture(3, 1, 3, number=13, policy="third", day=3)
    before = landed(spark)
    # a run later too, when the new policy's rows are no longer new
    for _ in range(2):
        message = project.error_of(*landing())
        for part in ("CDC_Work-Order", "restarted", "come to 40", "second", "at 1", "Fix: "):
            assert part in message
        # the tracking table is complete, also for the table at level 1, which has no other guard
        tracking = sorted([*before["change_tracking"], 1, 2, 3, 31])
        assert landed(spark) == {**before, "change_tracking": tracking}
    assert "restarted" in project.error_of("run", "--select", "stg_work_orders")


@pytest.mark.nightly
def test_both_policies_have_tables_of_their_own(
    spark: SparkSession, plant: Plant, project: DbtProject
) -> None:
    """The fix of the error before: what the first policy had left is landed, and the second's."""
    file = project.path / "models" / "sources.yml"
    declared = yaml.safe_load(file.read_text(encoding="utf-8"))
    (source,) = declared["sources"]
    orders = source["tables"][-2]
    others = []
    for source_name, identifier, other in (
        ("plant", "cdc_work_order", "second"),
        ("plant_2", "cdc_work_order_2", "policy"),
    ):
        settings = {**orders["config"]["meta"]["afterimage"], "other_policies": [other]}
        table = {**orders, "identifier": identifier, "config": {"meta": {"afterimage": settings}}}
        others.append({**source, "name": source_name, "tables": [source["tables"][0], table]})
    file.write_text(yaml.safe_dump({**declared, "sources": others}), encoding="utf-8")
    (project.path / "models" / "stg_work_orders_2.sql").write_text(
        "{{ stage_openedge('plant_2', 'CDC_Work-Order', tracking='_Cdc-Change-Tracking') }}\n",
        encoding="utf-8",
    )
    before = landed(spark)["work_order"]
    plant.capture(41, 1, 41)
    project(*landing())
    project(*landing("plant_2"))
    project("run", "--select", "stg_work_orders", "stg_work_orders_2")
    assert landed(spark)["work_order"] == [*before, 41]
    for model, expected in (("stg_work_orders", [*before, 41]), ("stg_work_orders_2", [1, 2, 31])):
        rows = spark.table(f"landing.{model}").select("change_seq", "change_oper").collect()
        assert sorted(int(row[0]) for row in rows) == expected
        assert {row[1] for row in rows} <= set("IUD")


def test_a_database_that_cannot_be_read(project: DbtProject) -> None:
    options = {"url": "jdbc:derby:memory:nowhere", "driver": DRIVER}
    arguments = {"source_name": "plant", "options": options}
    message = project.error_of(
        "run-operation", "land_openedge", "--args", yaml.safe_dump(arguments)
    )
    assert "nowhere" in message


def test_a_source_without_a_tracking_table(project: DbtProject) -> None:
    arguments = yaml.safe_dump({"source_name": "elsewhere", "options": {}})
    message = project.error_of("run-operation", "land_openedge", "--args", arguments)
    for part in ("`land_openedge`", "elsewhere", "`_Cdc-Change-Tracking`", "Fix: "):
        assert part in message
