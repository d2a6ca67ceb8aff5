"""Other processes read the marts while a build runs: they see a batch whole or not at all."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

ROOT = Path(__file__).parents[3]
SCHEMA = "readers"
READERS = {"iceberg": ("pyiceberg", "spark"), "delta": ("spark",)}


class Reader:
    """A process of `tests.functional.reader` and what it has printed so far."""

    def __init__(self, kind: str, spark_conf: dict[str, str]) -> None:
        self.lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.functional.reader", kind, SCHEMA, "orders_history"],
            cwd=ROOT,
            env={**os.environ, "READER_SPARK_CONF": json.dumps(spark_conf)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._collect, daemon=True).start()

    def _collect(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def next(self) -> str:
        """The next reading; fails when none comes within two minutes."""
        try:
            line = self.lines.get(timeout=120)
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"no reading\n{self.process.communicate()[1][-3000:]}") from None
        self.seen.append(line)
        return line

    def stop(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()


@pytest.fixture
def spark_conf(profiles: Path, warehouse: Path, table_format: str) -> dict[str, str]:
    """The Spark settings of the example profile, for a second session."""
    text = (profiles / "profiles.yml").read_text(encoding="utf-8")
    parameters: dict[str, str] = yaml.safe_load(text)["afterimage"]["outputs"][table_format][
        "server_side_parameters"
    ]
    return {
        name: re.sub(r"{{.*?}}", str(warehouse), str(value))
        for name, value in parameters.items()
        if "javax.jdo" not in name and name != "spark.driver.extraJavaOptions"
    } | {"spark.sql.catalogImplementation": "in-memory"}


@pytest.fixture
def project(make_dbt_project: Callable[..., DbtProject], spark: SparkSession) -> DbtProject:
    """Orders after the first batch, with the second one landed."""
    project = make_dbt_project(schema=SCHEMA, demos="qlik", demo_raw_schema="readers_source")
    project("run-operation", "land_demo", "--args", "{batch: 1}")
    project("run", "--select", "+orders_current")
    project("run-operation", "land_demo", "--args", "{batch: 2}")
    return project


@pytest.fixture
def readers(
    project: DbtProject, spark_conf: dict[str, str], table_format: str
) -> Iterator[list[Reader]]:
    started = [Reader(kind, spark_conf) for kind in READERS[table_format]]
    yield started
    for reader in started:
        reader.stop()


def test_readers_see_a_batch_whole_or_not_at_all(
    project: DbtProject, readers: list[Reader]
) -> None:
    before = {reader.next() for reader in readers}
    assert len(before) == 1, "the readers disagree before the build"

    project("run", "--select", "+orders_current")

    for reader in readers:
        while reader.next() in before:
            pass
        states = list(dict.fromkeys(reader.seen))
        assert len(states) == 2, f"a reader saw something in between: {states}"
    assert len({reader.seen[-1] for reader in readers}) == 1, "the readers disagree afterwards"
