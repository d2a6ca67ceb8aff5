"""Changes of one PostgreSQL, sent by Debezium as JSON and, by a second connector, as Avro.

The converter and the schema registry are Apicurio's, which follow Confluent's wire format and REST
interface. Both kinds of messages must give the same tables.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
import yaml

from afterimage_demo.broker import running_broker
from afterimage_demo.postgres import workload
from afterimage_demo.postgres.debezium import TOPICS, running_connector, wait_until_captured
from afterimage_demo.postgres.server import running_server
from afterimage_demo.postgres.tables import TABLES
from afterimage_demo.servers import free_ports, wait_until_started
from dbt_afterimage.dbt_spark.jars import fetched
from dbt_afterimage.spark.java import java
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project
from tests.functional.project_files import ROOT, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "avro_raw"
AVRO = "avro"
APICURIO = "2.6.13.Final"
CONVERTER = """\
value.converter=io.apicurio.registry.utils.converter.AvroConverter
value.converter.apicurio.registry.url={registry}/apis/registry/v2
value.converter.apicurio.registry.auto-register=true
value.converter.apicurio.registry.auto-register.if-exists=RETURN_OR_UPDATE
value.converter.apicurio.registry.as-confluent=true
value.converter.apicurio.registry.headers.enabled=false
value.converter.apicurio.registry.use-id=contentId
"""


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """The workload of the demo, landed and built in two batches from both kinds of messages."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("registered"), schema="registered")
    with (
        TemporaryDirectory(prefix="afterimage_avro_") as name,
        running_broker(Path(name)) as broker,
        running_registry(Path(name)) as registry,
        running_server(Path(name)) as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(workload, "ACCOUNTS", 2_000)
        write_models(dbt.path, f"{registry}/apis/ccompat/v7/subjects")
        spark.sql(f"create schema if not exists {RAW}")
        second = Path(name) / AVRO
        second.mkdir()
        workload.prepare(database, scale=1)
        jars = [("io.apicurio", "apicurio-registry-utils-converter", APICURIO)]
        converter = CONVERTER.format(registry=registry)
        with (
            running_connector(Path(name), database, broker),
            running_connector(second, database, broker, AVRO, converter, jars),
        ):
            request = {"brokers": broker.address, "pattern": rf"({TOPICS}|{AVRO})\.public\..*"}
            landing = json.dumps({"source_name": "raw", "request": request})
            for number in (1, 2):
                workload.work(database, number, scale=1, seed=7)
                wait_until_captured(database)
                dbt("run-operation", "land_kafka", "--args", landing)
                dbt("build")
    return dbt


@pytest.mark.parametrize("name", TABLES)
def test_avro_gives_the_tables_of_json(spark: SparkSession, project: DbtProject, name: str) -> None:
    """All but what is of a connector's own snapshots: places, times, and rows read again."""
    of_load = "if({0} = 'L', null, {1}) as {1}".format
    columns = {
        "changes": [
            *(
                of_load("change_oper", column)
                for column in ("change_seq", "changed_at", "transaction_id")
            ),
            *("change_oper", "before"),
        ],
        "history": [
            *(of_load("opened_by", column) for column in ("valid_from_seq", "valid_from")),
            *("valid_to_seq", "valid_to", "opened_by", "closed_by", "is_current"),
        ],
    }
    rows = {
        (form, kind): spark.table(f"{project.schema}.{name}_{form}_{kind}")
        .filter("change_oper = 'L' or transaction_id is not null" if kind == "changes" else "true")
        .selectExpr(*of_kind, *TABLES[name].columns)
        for kind, of_kind in columns.items()
        for form in ("json", "avro")
    }
    for kind in columns:
        of_json, of_avro = rows["json", kind], rows["avro", kind]
        assert of_json.count() > 0
        assert of_json.exceptAll(of_avro).limit(9).collect() == []
        assert of_avro.exceptAll(of_json).limit(9).collect() == []
    assert spark.table(f"{project.schema}.{name}_avro_changes_rejected").isEmpty()


def test_a_new_column_is_a_new_version_of_the_schema(
    spark: SparkSession, project: DbtProject
) -> None:
    ids = spark.sql(
        f"""
        select count(distinct substr(value, 1, 5))
        from {RAW}.messages
        where topic = '{AVRO}.public.documents' and value is not null
        """
    ).collect()
    assert ids[0][0] == 2


def write_models(folder: Path, subjects: str) -> None:
    """A chain for each table of the demo and each kind of message."""
    file = ROOT / "demo/models/staging/postgres/_postgres__sources.yml"
    source = yaml.safe_load(file.read_text(encoding="utf-8"))["sources"][0]
    tables: dict[str, tuple[dict[str, Any], list[dict[str, str]]]] = {}
    for entry in source["tables"][1:]:
        name, columns = entry["name"], entry["columns"]
        own = {
            **source["config"]["meta"]["afterimage"],
            **entry["config"]["meta"]["afterimage"],
        }
        tables[f"{name}_json"] = (own, columns)
        # the schema says how values are written
        of_avro = {key: value for key, value in own.items() if key != "encodings"}
        of_avro["filter"] = f"topic = '{AVRO}.public.{name}'"
        of_avro["schema_registry"] = f"{subjects}/{AVRO}.public.{name}-value"
        tables[f"{name}_avro"] = (of_avro, columns)
    write_project(folder, RAW, tables)
    sources = yaml.safe_load((folder / "models/sources.yml").read_text(encoding="utf-8"))
    for entry in sources["sources"][0]["tables"]:
        entry["identifier"] = "messages"
    sources["sources"][0]["tables"].append({"name": "messages"})
    write_files(folder, {"models/sources.yml": sources})


@contextmanager
def running_registry(folder: Path) -> Iterator[str]:
    """Apicurio's registry, which forgets everything in the end; its address."""
    (archive,) = fetched([("io.apicurio", "apicurio-registry-app", APICURIO, "all", "tar.gz")])
    program = folder / "registry"
    with tarfile.open(archive) as files:
        files.extractall(program, filter="data")
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    options = {"http.host": "127.0.0.1", "http.port": port}
    (jar,) = program.glob("*-runner.jar")
    log_file = folder / "registry.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [
                *(java(), "-Xmx256m"),
                *(f"-Dquarkus.{name}={value}" for name, value in options.items()),
                *("-jar", str(jar)),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        wait_until_started(
            "The registry",
            process,
            lambda: urlopen(f"{address}/apis/ccompat/v7/subjects").status == 200,
            log_file,
            OSError,
            seconds=120,
        )
        yield address
    finally:
        process.kill()
        process.wait()
