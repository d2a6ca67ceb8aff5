"""Python models on open-source Spark: dbt runs of a small project that uses this one's macros."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ROOT = Path(__file__).parents[2]
SCHEMA = "python_models"

PROJECT = """\
name: afterimage
profile: afterimage
model-paths: [models]
macro-paths: [{macros}]
clean-targets: [leftovers]
models: {{+file_format: "{{{{ target.name }}}}"}}
flags: {{send_anonymous_usage_stats: false}}
"""

SOURCES = """\
sources:
  - name: raw
    schema: python_models
    tables: [{name: rates}]
"""

NUMBERS = "select id from values (1), (2), (3) as numbers(id)\n"

Write = Callable[[str, str], Path]


@pytest.fixture
def project(
    make_dbt_project: Callable[..., DbtProject], tmp_path: Path, spark: SparkSession
) -> DbtProject:
    """A new project: the table `numbers` with 1, 2 and 3, and no Python model yet."""
    macros = os.path.relpath(ROOT / "macros", tmp_path)
    (tmp_path / "dbt_project.yml").write_text(PROJECT.format(macros=macros), encoding="utf-8")
    (tmp_path / "models").mkdir()
    write(tmp_path, "numbers.sql", "{{ config(materialized='table') }}\n" + NUMBERS)
    return make_dbt_project(tmp_path, schema=SCHEMA)


def write(folder: Path, name: str, text: str) -> None:
    (folder / "models" / name).write_text(textwrap.dedent(text), encoding="utf-8")


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row["id"] for row in spark.table(f"{SCHEMA}.{table}").collect())


def test_a_model_reads_refs_and_sources_and_writes_a_table(
    project: DbtProject, spark: SparkSession, table_format: str
) -> None:
    write(project.path, "sources.yml", SOURCES)
    write(
        project.path,
        "priced.py",
        """\
        from pyspark.sql import functions as F


        def model(dbt, session):
            dbt.config(materialized="table", tags=["daily"], factor=10)
            # on a line of its own: dbt does not find the key inside an expression
            factor = dbt.config.get("factor")
            rates = dbt.source("raw", "rates")
            return dbt.ref("numbers").join(rates, "id").select(
                "id",
                (F.col("rate") * factor).alias("price"),
                F.lit(str(dbt.this)).alias("written_to"),
                F.lit(session is spark).alias("is_the_session"),
            )
        """,
    )
    spark.sql(f"create schema if not exists {SCHEMA}")
    spark.sql(
        f"create or replace table {SCHEMA}.rates using {table_format} as "
        "select * from values (1, 7), (3, 9) as rates(id, rate)"
    )
    project("run")
    rows = [tuple(row) for row in spark.table(f"{SCHEMA}.priced").orderBy("id").collect()]
    assert rows == [
        (1, 70, f"{SCHEMA}.priced", True),
        (3, 90, f"{SCHEMA}.priced", True),
    ]
    assert provider(spark, "priced") == table_format


def provider(spark: SparkSession, table: str) -> str:
    described = spark.sql(f"describe table extended {SCHEMA}.{table}").collect()
    return str(next(row["data_type"] for row in described if row["col_name"] == "Provider")).lower()


def test_dbt_runs_twice_in_one_process(project: DbtProject, spark: SparkSession) -> None:
    text = """\
        def model(dbt, session):
            dbt.config(materialized="table")
            return dbt.ref("numbers").where("id <= {0}")
        """
    write(project.path, "few.py", text.format(1))
    project("run")
    assert ids(spark, "few") == [1]
    write(project.path, "few.py", text.format(2))
    project("run")
    assert ids(spark, "few") == [1, 2]


@pytest.fixture
def meeting() -> Iterator[threading.Barrier]:
    """A module `meeting` whose `point` blocks until four threads are there."""
    module = ModuleType("meeting")
    point = threading.Barrier(4, timeout=120)
    vars(module)["point"] = point
    sys.modules["meeting"] = module
    yield point
    del sys.modules["meeting"]


@pytest.mark.nightly
def test_four_threads(project: DbtProject, spark: SparkSession, meeting: threading.Barrier) -> None:
    for number in range(8):
        write(
            project.path,
            f"at_once_{number}.py",
            f"""\
            import meeting
            from pyspark.sql import functions as F

            MINE = {number}

            def model(dbt, session):
                dbt.config(materialized="table")
                meeting.point.wait()
                return dbt.ref("numbers").select(F.lit(MINE).alias("id")).limit(1)
            """,
        )
    project("run", "--threads", "4")
    assert not meeting.broken
    for number in range(8):
        assert ids(spark, f"at_once_{number}") == [number]


def test_a_failing_model_shows_the_users_file_line_and_message(
    project: DbtProject, spark: SparkSession
) -> None:
    write(
        project.path,
        "wrong.py",
        """\


        def check(rows):
            raise ValueError(f"{rows.count()} rows are too few")


        def model(dbt, session):
            dbt.config(materialized="table")
            return check(dbt.ref("numbers"))
        """,
    )
    write(
        project.path,
        "unknown_column.py",
        """\
        def model(dbt, session):
            dbt.config(materialized="table")
            rows = dbt.ref("numbers")
            return rows.select("idd")
        """,
    )
    write(
        project.path,
        "right.py",
        """\
        def model(dbt, session):
            dbt.config(materialized="table")
            return dbt.ref("numbers")
        """,
    )
    message = project.error_of("run", "--threads", "2")
    assert "Python model wrong failed at models/wrong.py, line 4" in message
    assert 'raise ValueError(f"{rows.count()} rows are too few")' in message
    assert "ValueError: 3 rows are too few" in message
    assert 'File "models/wrong.py", line 9, in model' in message
    assert "Python model unknown_column failed at models/unknown_column.py, line 4" in message
    assert "`idd` cannot be resolved" in message
    assert "'Project" not in message, "Spark's plan says nothing to a user"
    assert "dbt_afterimage" not in message, "nor do frames of this package"
    assert ids(spark, "right") == [1, 2, 3]


@pytest.mark.nightly
def test_an_error_of_this_package_shows_its_message_and_logs_its_traceback(
    project: DbtProject,
) -> None:
    write(
        project.path,
        "refused.py",
        """\
        from dbt_afterimage.change_log.deciding.gaps import GapError

        def model(dbt, session):
            dbt.config(materialized="table")
            if dbt.this:
                raise GapError("refused: changes may be lost. Fix: accept the gap.")
            return dbt.ref("numbers")
        """,
    )
    message = project.error_of("run", "--select", "refused")
    assert "refused: changes may be lost. Fix: accept the gap." in message
    assert "Traceback" not in message
    log = (project.scratch / "logs" / "dbt.log").read_text(encoding="utf-8")
    assert "Python model refused failed at models/refused.py, line 6" in log
    assert 'raise GapError("refused: changes may be lost. Fix: accept the gap.")' in log


@pytest.mark.nightly
def test_a_repaired_model_runs(project: DbtProject, spark: SparkSession) -> None:
    """A failure leaves nothing behind in the process: no module, no lines of code."""
    text = "def model(dbt, session):\n    dbt.config(materialized='table')\n    return {}\n"
    write(project.path, "mended.py", text.format("1 / 0"))
    assert "ZeroDivisionError" in project.error_of("run")
    write(project.path, "mended.py", text.format('dbt.ref("numbers")'))
    project("run")
    assert ids(spark, "mended") == [1, 2, 3]


@pytest.mark.nightly
def test_a_models_functions_run_in_sparks_workers(project: DbtProject, spark: SparkSession) -> None:
    write(
        project.path,
        "computed.py",
        """\
        from __future__ import annotations

        from dataclasses import dataclass

        from pyspark.sql import functions as F

        @dataclass
        class Factor:
            value: int

        FACTOR = Factor(100)

        @F.udf("int")
        def scaled(x):
            return x * FACTOR.value

        def model(dbt, session):
            dbt.config(materialized="table")
            return dbt.ref("numbers").select(scaled("id").alias("id"))
        """,
    )
    project("run")
    assert ids(spark, "computed") == [100, 200, 300]


@pytest.mark.nightly
def test_deps_and_clean_work_beside_a_live_session(
    project: DbtProject, spark: SparkSession
) -> None:
    (project.path / "packages.yml").write_text("packages: []\n", encoding="utf-8")
    leftovers = project.path / "leftovers"
    leftovers.mkdir()
    project("deps")
    project("clean")
    assert not leftovers.exists()
    project("run", "--select", "numbers")
    assert ids(spark, "numbers") == [1, 2, 3]


# --- a project on another adapter

STUB_ADAPTER = """\
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.contracts.connection import AdapterResponse, Credentials
from dbt.adapters.sql import SQLAdapter, SQLConnectionManager


@dataclass
class StubCredentials(Credentials):
    @property
    def type(self):
        return "stub"

    @property
    def unique_field(self):
        return "stub"

    def _connection_keys(self):
        return ()


class StubConnectionManager(SQLConnectionManager):
    TYPE = "stub"

    @contextmanager
    def exception_handler(self, sql):
        yield

    @classmethod
    def open(cls, connection):
        return connection

    @classmethod
    def get_response(cls, cursor):
        return AdapterResponse("OK")

    def cancel(self, connection):
        pass


class StubAdapter(SQLAdapter):
    ConnectionManager = StubConnectionManager

    @classmethod
    def date_function(cls):
        return "now()"


Plugin = AdapterPlugin(
    adapter=StubAdapter,
    credentials=StubCredentials,
    include_path=str(Path(__file__).parents[2] / "include" / "stub"),
)
"""

OTHER_PROJECT = """\
import sys

from dbt.cli.main import dbtRunner

for command in ("parse", "list", "clean", "deps"):
    result = dbtRunner().invoke(["--quiet", command])
    assert result.success, (command, result.exception)
assert "dbt.adapters.stub" in sys.modules
ours = [name for name in sys.modules if name.startswith("dbt_afterimage.")]
print(ours, "pyspark" in sys.modules, "dbt.adapters.spark" in sys.modules)
"""


def test_a_project_on_another_adapter_is_untouched(tmp_path: Path) -> None:
    adapter = tmp_path / "packages" / "dbt" / "adapters" / "stub"
    adapter.mkdir(parents=True)
    (adapter / "__init__.py").write_text(STUB_ADAPTER, encoding="utf-8")
    (adapter / "__version__.py").write_text('version = "1.11.0"\n', encoding="utf-8")
    include = tmp_path / "packages" / "dbt" / "include" / "stub"
    (include / "macros").mkdir(parents=True)
    (include / "dbt_project.yml").write_text("name: dbt_stub\nversion: 1.0.0\n", encoding="utf-8")
    folder = tmp_path / "other"
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text("name: other\nprofile: other\n", encoding="utf-8")
    (folder / "profiles.yml").write_text(
        "other: {target: any, outputs: {any: {type: stub, database: any, schema: any}}}\n",
        encoding="utf-8",
    )
    (folder / "models" / "one.sql").write_text("select 1 as id\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROJECT],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("DBT_")},
            "PYTHONPATH": str(tmp_path / "packages"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout.splitlines()[-1]
    assert printed == "['dbt_afterimage.dbt_spark', 'dbt_afterimage.dbt_spark.plugin'] False False"
