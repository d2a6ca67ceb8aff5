"""The command line: what it hands to dbt."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dbt.cli.main
import pytest
import typer
from typer.testing import CliRunner

from dbt_afterimage import __version__
from dbt_afterimage.cli import app, frame
from dbt_afterimage.cli.support.project_session import ProfileError, load_profile
from dbt_afterimage.cli.support.working import working
from dbt_afterimage.dbt_spark.jars import JARS
from dbt_afterimage.settings import SettingsError


def test_land_openedge_hands_options_to_dbt_and_the_jar_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    class Runner:
        def invoke(self, arguments: list[str]) -> Any:
            calls.append(arguments)
            return SimpleNamespace(success=len(calls) == 1, exception=None)

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Runner)
    monkeypatch.setenv(JARS, "")
    monkeypatch.setenv("AFTERIMAGE_JDBC_PASSWORD", "secret")
    jar = tmp_path / "driver.jar"
    jar.touch()
    given = ["land", "openedge", "plant", "--url", "jdbc:x://host", "--jar", str(jar)]
    options = ["--user", "joe", "--target", "delta"]
    assert CliRunner().invoke(app, [*given, *options]).exit_code == 0
    (call,) = calls
    assert call[:3] == ["run-operation", "land_openedge", "--args"]
    assert call[4:] == ["--target", "delta"]
    assert json.loads(call[3]) == {
        "source_name": "plant",
        "owner": "PUB",
        "options": {
            "url": "jdbc:x://host",
            "driver": "com.ddtek.jdbc.openedge.OpenEdgeDriver",
            "sessionInitStatement": "set transaction isolation level read committed",
            "user": "joe",
        },
    }
    assert os.environ[JARS] == str(jar)
    # dbt has said why
    assert CliRunner().invoke(app, given).exit_code == 1


def test_land_openedge_wants_a_jar_that_is_there(tmp_path: Path) -> None:
    given = ["land", "openedge", "plant", "--url", "jdbc:x", "--jar", str(tmp_path / "none.jar")]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 2
    assert "none.jar" in result.output.replace("\n", "")


def test_demo_lands_and_builds_in_turn_and_says_which_step_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[list[str]] = []

    class Runner:
        def invoke(self, arguments: list[str]) -> Any:
            calls.append(arguments)
            # of a hook and of a model
            nodes = [SimpleNamespace(resource_type=kind) for kind in ("operation", "model")]
            found = [SimpleNamespace(status="success", node=node) for node in nodes]
            results = SimpleNamespace(results=found)
            return SimpleNamespace(success=len(calls) < 4, result=results)

    monkeypatch.setattr(dbt.cli.main, "dbtRunner", Runner)
    given = ["demo", "--system", "openedge", "--seed", "11", "--target", "delta"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 1
    assert "`AFTERIMAGE_DEMOS=openedge dbt build --target delta` failed" in result.output
    assert "2/5 Build staging, change logs and marts ... 0 s; 1 models built" in result.output
    assert {call[0] for call in calls} == {"--quiet"}
    assert [call[1] for call in calls] == ["run-operation", "build", "run-operation", "build"]
    assert [call[4] for call in calls[::2]] == [
        '{"batch": 1, "scale": 1, "seed": 11, "system": "openedge"}',
        '{"batch": 2, "scale": 1, "seed": 11, "system": "openedge"}',
    ]


def test_demo_of_an_unknown_system() -> None:
    result = CliRunner().invoke(app, ["demo", "--system", "oracle"])
    assert result.exit_code == 1
    assert "no demo of system 'oracle'" in result.output
    assert "qlik" in result.output


def _commands(of: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in of.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("command", list(_commands(typer.main.get_command(app))), ids=" ".join)
def test_help_fits_a_screen_and_ends_with_an_example(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.output.rstrip().splitlines()
    assert len(lines) <= 40
    _, _, example = result.output.partition("Example:\n")
    assert all(line.startswith("  ") for line in example.rstrip().splitlines())
    assert f"afterimage {' '.join(command)}" in example


def test_help_lists_all_commands_with_whole_summaries_in_the_order_of_work() -> None:
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    commands = result.output.partition("Commands:\n")[2].partition("\n\n")[0]
    names = [
        line.split()[0]
        for line in commands.splitlines()
        if line.startswith("  ") and line[2] != " "
    ]
    assert names[:4] == ["init", "doctor", "demo", "land"]
    assert sorted(names) == sorted(frame._IN_ORDER)
    assert "..." not in commands


@pytest.mark.parametrize(
    "command", [["compact"], ["erase", "people", "--key", "1", "--rows", "--yes"]]
)
def test_a_command_outside_a_project_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.delenv("DBT_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert f"{tmp_path} has no dbt_project.yml. Fix: change to" in result.stderr


def test_all_commands_name_an_unknown_target_in_the_same_words() -> None:
    """Also those that are a dbt command."""
    said = {
        CliRunner().invoke(app, [command, "--target", "nope"]).stderr
        for command in ("status", "query", "compact")
    }
    (text,) = said
    assert "does not have a target named 'nope'" in text
    assert ". Fix: correct profiles.yml" in text


def test_spark_sql_without_java_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_afterimage.cli.commands.spark_sql.java_says", lambda: None)
    result = CliRunner().invoke(app, ["spark-sql"])
    assert result.exit_code == 1
    assert "JAVA_HOME and PATH have no `java`. Fix: install Java 17 or 21" in result.stderr


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"afterimage {__version__}\n")


def test_help_names_the_exit_codes() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    assert "Exit codes: 0 done; 1 failed" in output


@pytest.mark.parametrize(
    ("error", "exit_code", "printed"),
    [
        (SettingsError("`key` is 3. Fix: name columns."), 1, "`key` is 3. Fix: name columns.\n"),
        (frame.UsageProblem("--csv and --json. Fix: choose one."), 2, "--csv and --json. Fix: cho"),
        # dbt has printed why
        (frame.DbtFailedError("`dbt build` failed"), 1, ""),
    ],
)
def test_our_errors_are_printed_without_a_traceback(
    error: Exception, exit_code: int, printed: str
) -> None:
    commands = typer.Typer(cls=frame._Commands)

    @commands.callback(invoke_without_command=True)
    def fails() -> None:
        raise error

    result = CliRunner().invoke(commands, [])
    assert result.exit_code == exit_code
    assert result.stderr[: len(printed) or None] == printed
    assert "Traceback" not in result.output


def test_progress_is_quiet_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with working("Reading") as report:
        report("Reading more")
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("has_pyhive", [True, False])
def test_a_thrift_target_is_not_told_to_install_pyhive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pyhive: bool
) -> None:
    """The advice is that of dbt, and the target would be refused all the same."""
    if not has_pyhive:
        monkeypatch.setattr("dbt.adapters.spark.connections.hive", None)
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shop\n", encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(
        "shop: {target: t, outputs: {t: {type: spark, method: thrift, host: h, schema: s}}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("DBT_PROJECT_DIR", str(tmp_path))
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path))
    monkeypatch.delenv("DBT_TARGET", raising=False)
    with pytest.raises(ProfileError) as error:
        load_profile()
    assert "`method` is thrift; allowed: session. Fix: set `method: session`" in str(error.value)
    assert "PyHive" not in str(error.value)
