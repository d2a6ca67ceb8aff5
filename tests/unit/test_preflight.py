"""What a manifest shows to be wrong is an error before Spark starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark import preflight
from tests.python_process import python

ROOT = Path(__file__).parents[2]
CHECK_SESSION = "{% macro check_session() %}{% do adapter.afterimage.x() %}{% endmacro %}"
HISTORY = "{% macro history(log) %}{{ afterimage._of(log) }}{% endmacro %}"


def macro(package: str, name: str, text: str, *calls: str) -> Any:
    return SimpleNamespace(
        unique_id=f"macro.{package}.{name}",
        package_name=package,
        name=name,
        macro_sql=text,
        original_file_path=f"macros/{name}.sql",
        depends_on=SimpleNamespace(macros=list(calls)),
    )


def model(name: str, materialized: str, code: str = "", reads: str = "", **given: Any) -> Any:
    """A model, with configuration and `constraints` as dbt parses them."""
    constraints = given.pop("constraints", [])
    config = {"contract": {"enforced": False}, "grants": {}, "database": None} | given
    config["contract"] = SimpleNamespace(**config["contract"])
    return SimpleNamespace(
        resource_type="model",
        unique_id=f"model.shop.{name}",
        name=name,
        tags=[],
        config=SimpleNamespace(
            **{"on_schema_change": "ignore"} | config, materialized=materialized
        ),
        unrendered_config=given,
        constraints=constraints,
        columns={"id": SimpleNamespace(constraints=[])},
        original_file_path=f"models/{name}.sql",
        raw_code=code,
        depends_on=SimpleNamespace(nodes=[reads] if reads else []),
    )


def hook(*calls: str) -> Any:
    depends_on = SimpleNamespace(macros=list(calls))
    return SimpleNamespace(resource_type="operation", tags=["on-run-start"], depends_on=depends_on)


def source(name: str, **settings: Any) -> Any:
    meta = {"afterimage": settings} if settings else {}
    return source_with(name, {"meta": meta})


def source_with(name: str, config: dict[str, Any]) -> Any:
    entry = {"source_name": "erp", "name": name, "config": config}
    return SimpleNamespace(
        meta={},
        config=SimpleNamespace(meta=config.get("meta", {}), get=config.get),
        original_file_path=f"models/_{name}.yml",
        to_dict=lambda omit_none: entry,
    )


def manifest(nodes: list[Any] | None = None, *macros: Any, sources: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(
        nodes=dict(enumerate(nodes or [])),
        macros={each.unique_id: each for each in macros},
        sources=dict(enumerate(sources)),
    )


def adapter(given: Any, method: str = "session") -> Any:
    credentials = SimpleNamespace(method=SparkConnectionMethod(method))
    config = SimpleNamespace(credentials=credentials)
    return SimpleNamespace(config=config, get_macro_resolver=lambda: given)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Any:
    flags = SimpleNamespace(WHICH="run")
    monkeypatch.setattr(preflight, "command_flag", lambda name: getattr(flags, name))
    return flags


WRONG = manifest(
    sources=(
        source("orders", system="qlik_change_table", kee=["id"]),
        source("bills", system="qlik"),
        source("lines", system="qlik_change_table", key=["id"]),
        source("others"),
    )
)
PACKAGE = [
    macro("afterimage", "check_session", CHECK_SESSION),
    macro("afterimage", "history", HISTORY),
]


# --- settings


def test_settings_of_all_source_tables_are_checked() -> None:
    orders, bills = preflight.problem_of(WRONG).splitlines()
    assert orders.startswith("models/_orders.yml: ")
    assert "Source table erp.orders: unknown setting `kee`. Did you mean `key`?" in orders
    assert "Source table erp.bills: `system` is 'qlik'; allowed: " in bills


def test_settings_one_level_too_high_are_named() -> None:
    settings = {"system": "qlik_change_table", "key": ["id"]}
    given = manifest(sources=(source_with("orders", {"afterimage": settings}),))
    assert "`afterimage` is in `config`" in preflight.problem_of(given)


def test_models_that_read_another_layer_are_named() -> None:
    nodes = {
        "stg": model("stg", "staging_view"),
        "log": model("log", "change_log", "return build_changes(dbt, session, staged)", "stg"),
        "view": model("view", "view", reads="log"),
        "good": model("good", "scd2_history", reads="log"),
        "own": model("own", "scd2_history", reads="view"),
        "current": model("current", "current_state", reads="good"),
        "fields": model("fields", "field_changes", reads="log"),
    }
    given = manifest()
    given.nodes = nodes
    assert preflight.problem_of(given) == ""
    given.nodes = {
        **nodes,
        "wrong": model("wrong", "scd2_history", reads="stg"),
        "table": model("table", "table", "return build_changes(dbt, session, staged)", "stg"),
    }
    wrong, table = preflight.problem_of(given).splitlines()
    assert wrong == (
        "Model wrong (models/wrong.sql) reads stg, which is a staging_view. Its input is a change "
        "log. Fix: ref('<table>_changes')."
    )
    assert table.startswith("Model table (models/table.sql) calls `build_changes` and is")


@pytest.mark.parametrize("name", ["run", "build", "test", "compile", "seed", "snapshot"])
def test_a_wrong_setting_is_an_error_at_each_connection(command: Any, name: str) -> None:
    command.WHICH = name
    given = adapter(WRONG)
    for _ in range(2):
        with pytest.raises(DbtRuntimeError, match=r"erp\.orders: unknown setting `kee`"):
            preflight.check_before_connecting(given)


def test_a_wrong_setting_is_an_error_of_dbt_parse(command: Any) -> None:
    preflight.check_after_parsing(adapter(WRONG))
    command.WHICH = "parse"
    with pytest.raises(DbtRuntimeError, match=r"erp\.orders: unknown setting `kee`"):
        preflight.check_after_parsing(adapter(WRONG))


@pytest.mark.parametrize("name", ["run-operation", "show", "debug", None])
def test_commands_that_repair_and_query_go_on(command: Any, name: str | None) -> None:
    command.WHICH = name
    preflight.check_before_connecting(adapter(WRONG))


def test_a_manifest_is_checked_once(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    monkeypatch.setattr(preflight, "problem_of", checked.append)
    given = adapter(manifest())
    for _ in range(3):
        preflight.check_before_connecting(given)
    assert len(checked) == 1
    given.get_macro_resolver = lambda: None
    preflight.check_before_connecting(given)
    given.get_macro_resolver = manifest
    preflight.check_before_connecting(given)
    assert len(checked) == 2, "another manifest"


@pytest.fixture
def misspelt(tmp_path: Path) -> Callable[[str], str]:
    """Run code in a project with a misspelt setting, where Java would not start; what it prints."""
    files = {
        "dbt_project.yml": "name: shop\nprofile: afterimage\n"
        "flags: {send_anonymous_usage_stats: false}\n",
        "profiles.yml": (ROOT / "profiles.yml.example").read_text(encoding="utf-8"),
        "models/one.sql": "select 1 as one",
        "models/sources.yml": "sources:\n- name: erp\n  config: {meta: {afterimage: {system: "
        "qlik_change_table}}}\n  tables:\n  - name: orders\n"
        "    config: {meta: {afterimage: {kee: [id]}}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {
        "JAVA_HOME": str(tmp_path / "no_java"),
        "AFTERIMAGE_WAREHOUSE": str(tmp_path / "warehouse"),
        "DBT_PROFILES_DIR": str(tmp_path),
        "DBT_TARGET_PATH": str(tmp_path / "target"),
        "DBT_LOG_PATH": str(tmp_path / "logs"),
    }
    return lambda code: python(code, tmp_path, **environment)


def test_a_misspelt_setting_is_reported_before_spark_starts(
    misspelt: Callable[[str], str], tmp_path: Path
) -> None:
    """By dbt itself, after a full parse and after a partial one."""
    printed = misspelt("""
from dbt.cli.main import dbtRunner
for command in ("parse", "parse", "run", "run", "compile"):
    print("raised", dbtRunner().invoke(["--quiet", command]).exception)
""")
    raised = (
        "raised Runtime Error\n  models/sources.yml:5: Source table erp.orders: unknown setting "
        "`kee`"
    )
    assert printed.count(raised) == 5, printed
    assert "Spark did not start" not in printed
    assert not (tmp_path / "logs" / "spark.log").exists()


def test_doctor_lists_the_tables_of_a_project_with_a_misspelt_setting(
    misspelt: Callable[[str], str],
) -> None:
    printed = misspelt("""
from dbt_afterimage.cli.commands.doctor.project import declared_tables, project_checks
for check in project_checks(*declared_tables(None)):
    print(check.name, check.state)
""")
    assert printed.splitlines() == ["project ok", "settings of erp.orders failed"]


# --- macros that were copied


def test_copied_macros_need_the_name_of_the_package() -> None:
    private = macro("shop", "_current", HISTORY)
    problem = preflight.problem_of(manifest([], private, macro("shop", "history", HISTORY)))
    assert "The macro `history` (macros/history.sql) of shop calls" in problem
    assert "Fix: remove the copies and install the package: `afterimage init`" in problem


def test_macros_of_a_project_may_call_those_of_the_package() -> None:
    own = macro("shop", "own", HISTORY)
    nodes = [model("orders_history", "scd2_history"), hook("macro.afterimage.check_session")]
    assert preflight.problem_of(manifest(nodes, *PACKAGE, own)) == ""


@pytest.mark.parametrize("package", ["afterimage", "shop"])
def test_models_without_the_hook_are_told_which_line_is_missing(package: str) -> None:
    copied = macro(package, "check_session", CHECK_SESSION)
    nodes = [model("orders_history", "scd2_history"), hook("macro.shop.other")]
    problem = preflight.problem_of(manifest(nodes, copied))
    assert "Models such as `orders_history` need both. Nothing was run. Fix: " in problem
    line = f'on-run-start:\n  - "{{{{ {package}.check_session() }}}}"'
    assert problem.endswith(line)


def test_a_hook_may_call_the_check_by_a_macro_of_its_own() -> None:
    own = macro("shop", "start", "", "macro.shop.start", "macro.afterimage.check_session")
    nodes = [model("orders_history", "scd2_history"), hook("macro.shop.start")]
    assert preflight.problem_of(manifest(nodes, *PACKAGE, own)) == ""


def test_staging_views_alone_need_no_hook() -> None:
    assert preflight.problem_of(manifest([model("stg", "staging_view")], *PACKAGE)) == ""


def test_projects_that_do_not_use_the_package_are_left_alone() -> None:
    other = macro("shop", "check_session", "select 1")
    assert preflight.problem_of(manifest([model("h", "scd2_history")], other)) == ""
    assert preflight.problem_of(manifest([model("h", "table")], *PACKAGE)) == ""


# --- configuration of dbt


@pytest.mark.parametrize(
    "given",
    [
        {"contract": {"enforced": True}},
        {"constraints": [{"type": "primary_key"}]},
        {"grants": {"select": ["reader"]}},
        {"database": "lake"},
        {"on_schema_change": "sync_all_columns"},
        {"on_schema_change": "ignore"},
    ],
)
def test_configuration_that_would_be_ignored_is_an_error(given: dict[str, Any]) -> None:
    started = hook("macro.afterimage.check_session")
    ours = manifest([model("orders_history", "scd2_history", **given), started], *PACKAGE)
    problem = preflight.problem_of(ours)
    assert problem.startswith(f"model.shop.orders_history is configured with `{next(iter(given))}")
    assert "the materialization scd2_history" in problem
    assert "Nothing was run. Fix: remove it" in problem
    assert preflight.problem_of(manifest([model("own", "table", **given)], *PACKAGE)) == ""


def test_configuration_that_does_what_we_do_is_none() -> None:
    started = hook("macro.afterimage.check_session")
    history = model("h", "scd2_history", on_schema_change="append_new_columns")
    view = model("stg", "staging_view", on_schema_change="fail")
    assert preflight.problem_of(manifest([history, view, started], *PACKAGE)) == ""


# --- another method


def test_a_thrift_target_is_refused_before_dbt_connects(command: Any) -> None:
    with pytest.raises(DbtRuntimeError, match=r"`method` is thrift; allowed: session\..*Fix: "):
        preflight.check_before_connecting(
            adapter(manifest([model("orders_history", "scd2_history")], *PACKAGE), "thrift")
        )


@pytest.mark.parametrize("given", [WRONG, manifest([model("h", "table")], *PACKAGE)])
def test_thrift_projects_without_models_of_the_package_are_left_alone(
    command: Any, given: Any
) -> None:
    preflight.check_before_connecting(adapter(given, "thrift"))
