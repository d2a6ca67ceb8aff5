"""Fixtures of the functional tests: one Spark session for a process of pytest, and dbt in it.

A process can hold one JVM, so all tests of a process share the session that `profiles.yml.example`
describes for one table format:

    pytest tests/functional --table-format iceberg    (the default)
    pytest tests/functional --table-format delta
    pytest tests/functional --numprocesses 2          a worker for each of two cores
    pytest tests/functional --spark-workers 2         on a cluster of two Spark workers
    pytest tests/functional --compiled                all plans compiled, as a user's are

Tests keep apart by schema: the demos are in the schema `afterimage`; `make_dbt_project` gives any
project, this one included, in a schema of its own. The warehouse is a temporary folder; each worker
has its own, and the tests of a file run in one worker, one after the other.
`scripts/with_env.sh` sets the Java that Spark needs.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from afterimage_demo.broker import Broker, running_broker
from afterimage_demo.run import run_demo
from dbt_afterimage.dbt_spark.jars import JARS, avro_jars, kafka_jars
from tests.functional.dbt_project import DbtProject
from tests.functional.people import People, build_people
from tests.functional.runs import Runs
from tests.functional.scheduling import LONGEST, FileScheduling
from tests.functional.standalone import parameters_of_cluster, standalone_cluster
from tests.spark_settings import INTERPRETED_BY_DBT, java_compiler
from tests.streams.selection import has_many_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
TABLE_FORMATS = ("iceberg", "delta")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--table-format",
        choices=TABLE_FORMATS,
        default="iceberg",
        help="the target of profiles.yml.example that functional tests run on",
    )
    parser.addoption(
        "--spark-workers",
        type=int,
        default=0,
        help="workers of a standalone cluster for the session of all tests; 0 = local[2]",
    )
    parser.addoption(
        "--kills", type=int, default=2, help="how many runs nightly/test_kills.py kills"
    )
    parser.addoption(
        "--landing-kills", type=int, default=1, help="how often test_land_kafka.py kills a landing"
    )
    parser.addoption(
        "--versions", type=int, default=20_000, help="size of the history in test_files_stay.py"
    )
    parser.addoption(
        "--transactions",
        type=int,
        default=4_000,
        help="how many transactions of pgbench nightly/test_postgres.py runs",
    )
    parser.addoption(
        "--demos-in",
        type=Path,
        help="a folder, recreated, for the warehouses and what dbt compiled of the demos; it stays",
    )


def pytest_configure(config: pytest.Config) -> None:
    kept: Path | None = config.getoption("--demos-in")
    if kept is not None and not hasattr(config, "workerinput"):
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    return FileScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    other = "iceberg" if config.getoption("--table-format") == "delta" else "delta"
    of_other = [item for item in items if item.get_closest_marker(f"{other}_only")]
    config.hook.pytest_deselected(items=of_other)
    items[:] = [item for item in items if item not in of_other]
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("functional")
        if FOLDER / "nightly" in item.path.parents:
            item.add_marker("nightly")
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def table_format(request: pytest.FixtureRequest) -> str:
    """`iceberg` or `delta`: the table format, and the target's name."""
    return str(request.config.getoption("--table-format"))


@pytest.fixture(scope="session")
def warehouse(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, worker_id: str
) -> Iterator[Path]:
    """The folder that holds the catalog and all tables of this worker."""
    kept: Path | None = request.config.getoption("--demos-in")
    if kept is None:
        folder = tmp_path_factory.mktemp("warehouse")
    else:
        folder = kept.resolve() / f"warehouse_of_{worker_id}"
        folder.mkdir()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AFTERIMAGE_WAREHOUSE", str(folder))
        # Spark's workers must be the Python that the driver is, whatever python3 means outside.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.delenv("SPARK_HOME", raising=False)
        # the one session of all tests has the jars that landing and decoding messages take
        environment.setenv(JARS, ",".join(map(str, [*kafka_jars(), *avro_jars()])))
        for name in [name for name in os.environ if name.startswith("DBT_")]:
            environment.delenv(name)
        yield folder


@pytest.fixture(scope="session")
def cluster_parameters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, warehouse: Path
) -> Iterator[dict[str, str]]:
    """Spark's parameters of a cluster that runs as long as the tests; none without workers."""
    workers = int(request.config.getoption("--spark-workers"))
    if not workers:
        yield {}
        return
    with standalone_cluster(tmp_path_factory.mktemp("workers"), workers, "2g") as cluster:
        yield {
            **parameters_of_cluster(cluster.master, "1800m"),
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        }


@pytest.fixture(scope="session")
def profiles(
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    warehouse: Path,
    cluster_parameters: dict[str, str],
) -> Path:
    """The folder of a `profiles.yml`: the example's targets, with a schema that tests choose."""
    text = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")
    profile = yaml.safe_load(text)
    has_few_rows = not has_many_streams(request.config)
    compiler = java_compiler(has_few_rows=has_few_rows)
    for output in profile["afterimage"]["outputs"].values():
        output["schema"] = "{{ env_var('AFTERIMAGE_TEST_SCHEMA') }}"
        parameters = output["server_side_parameters"]
        # one session runs all tests
        parameters["spark.driver.memory"] = "3g"
        if has_few_rows and not request.config.getoption("--compiled"):
            parameters |= INTERPRETED_BY_DBT
        # Derby, the metastore of the Delta target, writes its log to the working folder otherwise.
        derby_log = warehouse / "derby.log"
        parameters["spark.driver.extraJavaOptions"] = (
            # the first compiler needs more room for its code
            f"-XX:+UseParallelGC {compiler} -XX:ReservedCodeCacheSize=600m "
            f"-Xms1g -XX:MetaspaceSize=400m -Dderby.stream.error.file={derby_log}"
        )
        parameters |= cluster_parameters
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def make_dbt_project(
    tmp_path_factory: pytest.TempPathFactory, profiles: Path, table_format: str
) -> Callable[..., DbtProject]:
    """Makes a `DbtProject`: `make_dbt_project(schema="mine", demo_raw_schema="mine_raw")`.

    `path`: the project's folder, by default this project.
    `schema`: the target's schema; tables of other tests are in other schemas.
    `demos`: names of the demos whose models are enabled, joined by commas.
    Everything else is a dbt var of all its commands.
    """

    def make(
        path: Path = ROOT, schema: str = "afterimage", demos: str = "", **variables: Any
    ) -> DbtProject:
        scratch = tmp_path_factory.mktemp(f"dbt_{schema}")
        return DbtProject(path, profiles, table_format, schema, scratch, variables, demos)

    return make


@pytest.fixture(scope="session")
def spark(
    make_dbt_project: Callable[..., DbtProject], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The session that dbt uses, made by dbt from the profile: same jars, catalog and settings."""
    folder = tmp_path_factory.mktemp("start_spark")
    (folder / "dbt_project.yml").write_text("name: start\nprofile: afterimage\n", encoding="utf-8")
    (folder / "macros").mkdir()
    (folder / "macros" / "start.sql").write_text(
        "{% macro start() %}{% do run_query('select 1') %}{% endmacro %}", encoding="utf-8"
    )
    make_dbt_project(folder)("run-operation", "start")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def build_demo(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    warehouse: Path,
    request: pytest.FixtureRequest,
) -> Callable[[str], DbtProject]:
    """What `afterimage demo --system` does, dbt's own tests included: `build_demo("qlik")`.

    All demos share the schema `afterimage`, as they do when one user tries them all.
    """

    def build(system: str) -> DbtProject:
        project = make_dbt_project(demos=system)
        with project.environment():
            run_demo(system=system, scale=1, seed=7, target=None, docs=False)
        kept: Path | None = request.config.getoption("--demos-in")
        if kept is not None:
            shutil.copytree(project.scratch / "target", kept / "target", dirs_exist_ok=True)
            built = kept / "demos"
            before = built.read_text(encoding="utf-8").split(",") if built.exists() else []
            built.write_text(",".join([*before, system]), encoding="utf-8")
            if not (kept / "warehouse").exists():
                (kept / "warehouse").symlink_to(warehouse)
        return project

    return build


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A Kafka broker; a topic has three partitions."""
    with running_broker(tmp_path_factory.mktemp("broker"), partitions=3) as running:
        yield running


@pytest.fixture(scope="session")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> People:
    """A small project in the schema `people`, built twice: tests leave its tables as they are."""
    project = make_dbt_project(tmp_path_factory.mktemp("people"), schema="people")
    return build_people(project, spark, table_format)


@pytest.fixture
def runs(profiles: Path, table_format: str, tmp_path: Path) -> Runs:
    """Processes that build in a warehouse of their own, so that a test can kill them."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    own_profiles = tmp_path / "profiles"
    own_profiles.mkdir()
    text = (profiles / "profiles.yml").read_text(encoding="utf-8")
    (own_profiles / "profiles.yml").write_text(
        text.replace(os.environ["AFTERIMAGE_WAREHOUSE"], str(warehouse)), encoding="utf-8"
    )
    return Runs(warehouse, own_profiles, table_format, tmp_path / "scratch")
