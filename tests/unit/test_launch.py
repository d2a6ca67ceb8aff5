"""Settings reach Spark through a file of this user; on one machine, nothing is open to others."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dbt_afterimage.spark.launch import (
    launch_arguments,
    loopback_settings,
    private_settings,
    text,
)


def test_settings_are_in_a_file_that_only_this_user_reads() -> None:
    with launch_arguments({"spark.hadoop.fs.s3a.secret.key": "abc", "spark.b": True}) as given:
        file = Path(given[-1])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines == ["spark.hadoop.fs.s3a.secret.key=abc", "spark.b=true"]
        assert "abc" not in " ".join(given)
    assert not file.exists()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (r"C:\new", r"C\:\\new"),
        ("a=b c", r"a\=b\ c"),
        ("one\ntwo", r"one\ntwo"),
        ("#no comment", r"\#no\ comment"),
    ],
)
def test_values_are_escaped_as_java_reads_properties(value: str, expected: str) -> None:
    with launch_arguments({"spark.any": value}) as given:
        assert Path(given[-1]).read_text(encoding="utf-8") == f"spark.any={expected}\n"


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", None])
def test_spark_on_one_machine_is_open_to_nobody_else(master: str | None) -> None:
    own = private_settings({"spark.master": master} if master else {})
    assert own["spark.driver.host"] == "127.0.0.1"
    assert stat.S_IMODE(Path(own["spark.local.dir"]).stat().st_mode) == 0o700


@pytest.mark.parametrize("master", ["yarn", "spark://127.0.0.1:7077", "k8s://https://host"])
def test_the_driver_of_a_cluster_stays_reachable(master: str) -> None:
    assert private_settings({"spark.master": master}) == {}


def test_what_the_target_sets_stays() -> None:
    given = {"spark.driver.host": "10.0.0.1", "spark.local.dir": "/big/disk"}
    assert private_settings(given) == loopback_settings(given) == {}


@pytest.mark.parametrize(("value", "expected"), [(True, "true"), (2, "2"), ("True", "True")])
def test_values_of_yaml_are_those_of_spark(value: object, expected: str) -> None:
    assert text(value) == expected
