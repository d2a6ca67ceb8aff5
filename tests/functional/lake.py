"""A small project on tables in an object store or a remote catalog, used by other processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.functional.project_files import write_files

ROOT = Path(__file__).parents[2]
ICEBERG = "org.apache.iceberg"

COMMANDS = {
    "doctor": ["doctor", "--json"],
    "status": ["status", "--json"],
    "compact": ["compact"],
    "query": ["query", "--json", "select id, name from people_history order by id, valid_from_seq"],
    "staging": ["query", "--json", "select change_oper, name from stg_people order by all"],
    "erase": ["erase", "people", "--key", "2", "--rows", "--yes"],
}
"""What is run after the second batch."""

FIRST = [
    [1, "Ann", "I", None, True],
    [2, "Bob", "I", None, True],
    [3, "Cid", "I", None, True],
]
"""The history after the first batch: id, name, opened_by, closed_by, is_current."""
SECOND = [
    [1, "Ann", "I", "U", False],
    [1, "Anna", "U", None, True],
    [2, "Bob", "I", "D", False],
    [3, "Cid", "I", None, True],
    [4, "Dan", "I", None, True],
]

STAGED = "B Ann, D Bob, I Ann, I Bob, I Cid, I Dan, U Anna"
"""What the staging model shows of the raw records of both batches."""

DOCUMENTED = {"pages": 6, "valid_from": "timestamp"}
"""What dbt docs show: pages of models, and the type of a column of history."""


def iceberg_version() -> str:
    """The one in the example's profile."""
    text = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")
    found = re.search(rf"{re.escape(ICEBERG)}:iceberg-spark-runtime[^:]*:([\d.]+)", text)
    assert found is not None
    return found[1]


def s3_settings(store: str) -> dict[str, str]:
    """A catalog's settings of the store at an address."""
    return {
        "io-impl": f"{ICEBERG}.aws.s3.S3FileIO",
        "s3.endpoint": store,
        "s3.path-style-access": "true",
    }


def catalog_parameters(catalog: Mapping[str, str]) -> dict[str, str]:
    """Spark's parameters of settings of the profile's Iceberg catalog."""
    return {f"spark.sql.catalog.lake.{name}": value for name, value in catalog.items()}


def output_of(command: Sequence[str], environment: Mapping[str, str], timeout: int) -> str:
    """What a command prints that runs in the project's root; it must succeed."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout


@dataclass(frozen=True)
class Lake:
    """A folder with a project and its profile."""

    folder: Path
    table_format: str = "iceberg"
    has_views: bool = True

    def published(self, versions: list[list[Any]]) -> dict[str, Any]:
        """What lake_run says of readers who see these versions."""
        if self.table_format != "iceberg":
            return {}
        return {"tag": versions, "view": versions if self.has_views else None}

    def write_profile(
        self, profiles: Path, parameters: Mapping[str, str], jars: Sequence[str] = ()
    ) -> None:
        """The target of the table format, with other parameters.

        Args:
            profiles: the folder of the tests' profile.
            parameters: of Spark, besides those of the profile.
            jars: Maven packages, besides those of the profile.
        """
        profile = yaml.safe_load((profiles / "profiles.yml").read_text(encoding="utf-8"))
        target = profile["afterimage"]["outputs"][self.table_format]
        given = target["server_side_parameters"]
        given |= {"spark.driver.memory": "2g", **parameters}
        given["spark.jars.packages"] = ",".join([given["spark.jars.packages"], *jars])
        write_files(self.folder, {"profiles.yml": profile})

    def write_profile_of_store(self, profiles: Path, catalog: Mapping[str, str]) -> None:
        """The target `iceberg` with its tables in an object store.

        Args:
            profiles: the folder of the tests' profile.
            catalog: settings of the catalog, besides those of the profile.
        """
        jars = [f"{ICEBERG}:iceberg-aws-bundle:{iceberg_version()}"]
        self.write_profile(profiles, catalog_parameters(catalog), jars)

    def run(self, *command: str) -> str:
        """What a command prints that works on the Qlik demo with the lake's profile."""
        given = {"DBT_PROFILES_DIR": str(self.folder), "AFTERIMAGE_DEMOS": "qlik"}
        given |= {"DBT_TARGET_PATH": str(self.folder / "target"), "DBT_TARGET": self.table_format}
        given |= {"DBT_LOG_PATH": str(self.folder / "logs"), "AFTERIMAGE_TEST_SCHEMA": "afterimage"}
        program = Path(sys.executable).with_name(command[0])
        return output_of([str(program), *command[1:]], given, timeout=900)

    def build(
        self,
        batch: int,
        commands: list[list[str]],
        environment: Mapping[str, str],
        processes: str = "one",
    ) -> dict[str, Any]:
        """What a batch and commands after it left, as lake_run writes it."""
        result = self.folder / f"result{batch}.json"
        arguments = [self.folder, self.table_format, batch, processes, json.dumps(commands), result]
        command = [sys.executable, "-m", "tests.functional.lake_run", *map(str, arguments)]
        output_of(command, environment, timeout=1200)
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found


def check_lake(lake: Lake, **environment: str) -> None:
    """Two batches are built, and the commands work on their tables."""
    first = lake.build(1, [], environment)
    assert (first["built"], first["published"]) == (FIRST, lake.published(FIRST))
    found = lake.build(2, list(COMMANDS.values()), environment)
    assert found["held_back"] == lake.published(FIRST)
    assert (found["built"], found["published"]) == (SECOND, lake.published(SECOND))
    assert found["documented"] == DOCUMENTED
    assert found["paths"] == ["rebuild", "incremental"]
    said = dict(zip(COMMANDS, found["commands"], strict=True))
    failed = {name: each["output"] for name, each in said.items() if each["exit_code"]}
    assert not failed, failed
    rows = json.loads(said["query"]["stdout"])
    assert [[row["id"], row["name"]] for row in rows] == [row[:2] for row in SECOND]
    staged = json.loads(said["staging"]["stdout"])
    assert ", ".join(" ".join(row.values()) for row in staged) == STAGED
    assert found["history"] == [row for row in SECOND if row[0] != 2]
    assert found["published_later"] == lake.published(found["history"])
