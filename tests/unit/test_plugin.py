"""The dbt plugin, without a JVM: what it imports and touches, how a model runs and fails."""

from __future__ import annotations

import linecache
import pickle
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark import impl
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark import patches as extension
from dbt_afterimage.dbt_spark import plugin, python_submission
from dbt_afterimage.dbt_spark.catalog import readable_columns
from dbt_afterimage.dbt_spark.macro_api.registry import MacroApi, ParsingMacroApi
from dbt_afterimage.dbt_spark.python_submission import SessionPythonJobHelper
from dbt_afterimage.storage import progress_cache
from tests.python_process import python

ROOT = Path(__file__).parents[2]

# A dbt project needs no more for `dbt deps` and `dbt clean`.
BARE_PROJECT = """\
name: bare
profile: bare
flags: {send_anonymous_usage_stats: false}
clean-targets: [target]
"""

# Of an adapter that is not installed.
BARE_PROFILE = """\
bare: {target: any, outputs: {any: {type: postgres, schema: any}}}
"""


def credentials(method: str = "session", **parameters: str) -> Any:
    from dbt.adapters.spark.connections import SparkConnectionMethod

    return SimpleNamespace(server_side_parameters=parameters, method=SparkConnectionMethod(method))


@pytest.fixture
def adapter_class(monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    """A class with what of dbt-spark's adapter the plugin changes, extended by the plugin."""

    class Adapter:
        _available_: frozenset[str] = frozenset({"get_relation"})
        _parse_replacements_: dict[str, Any] = {"get_relation": None}  # noqa: RUF012  # as dbt has it
        default_python_submission_method = property(lambda self: "other")
        python_submission_helpers = property(lambda self: {"other": object})

        def __init__(self, credentials: Any) -> None:
            self.config = SimpleNamespace(credentials=credentials)

        def get_macro_resolver(self) -> Any:
            return None

        def set_macro_resolver(self, macro_resolver: list[str]) -> None:
            macro_resolver.append("taken")

        def acquire_connection(self, name: str | None = None) -> str:
            return f"connection {name}"

        def cleanup_connections(self) -> None:
            self.is_closed = True

        def _get_columns_for_catalog(self, relation: Any) -> Iterator[dict[str, Any]]:
            yield {"column_type": "decimal(9,2)"}

    monkeypatch.setattr(impl, "SparkAdapter", Adapter)
    monkeypatch.setattr(extension, "start_sessions_quietly", lambda: None)
    extension.extend_spark_adapter()
    return Adapter


@pytest.fixture
def bare_project(tmp_path: Path) -> Path:
    (tmp_path / "dbt_project.yml").write_text(BARE_PROJECT, encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(BARE_PROFILE, encoding="utf-8")
    return tmp_path


# --- what importing costs


@pytest.mark.parametrize(
    ("dbt_core", "warnings"), [("1.11.16", 0), ("1.12.6", 0), ("1.13.0b1", 1), ("1.9.0", 0)]
)
def test_a_newer_dbt_than_the_tested_ones_gets_a_warning(
    monkeypatch: pytest.MonkeyPatch, dbt_core: str, warnings: int
) -> None:
    said: list[str] = []
    monkeypatch.setattr(AdapterLogger, "warning", lambda self, text: said.append(text))
    plugin._warn_if_untested(dbt_core)
    assert [f"dbt-core {dbt_core} is newer" in text for text in said] == [True] * warnings


def test_importing_the_package_imports_neither_spark_nor_dbt_nor_pydantic(tmp_path: Path) -> None:
    printed = python(
        """
        import sys
        import dbt_afterimage
        loaded = {name.split(".")[0] for name in sys.modules}
        print(sorted(loaded & {"pyspark", "py4j", "dbt", "dbt_common", "pydantic", "pyarrow"}))
        """,
        tmp_path,
    )
    assert printed.strip() == "[]"


def test_dbt_finds_the_plugin_by_its_name(tmp_path: Path) -> None:
    printed = python(
        """
        from dbt.plugins.manager import PluginManager
        print([type(p).__name__ for p in PluginManager.from_modules("any")._plugins])
        """,
        tmp_path,
    )
    assert "'AfterimagePlugin'" in printed


def test_other_attributes_of_the_package_are_missing() -> None:
    import dbt_afterimage

    with pytest.raises(AttributeError, match="no attribute 'plugin'"):
        _ = dbt_afterimage.plugin


# --- what the plugin touches


def test_commands_that_load_no_spark_adapter_stay_without_spark(bare_project: Path) -> None:
    printed = python(
        """
        import sys
        from dbt.cli.main import dbtRunner
        for command in ("deps", "clean"):
            result = dbtRunner().invoke(["--quiet", command])
            assert result.success, result.exception
        heavy = {"pyspark", "dbt.adapters.spark", "dbt_afterimage.settings"}
        print(sorted(heavy & set(sys.modules)))
        """,
        bare_project,
    )
    assert printed.splitlines()[-1] == "[]"


def test_nothing_happens_where_dbt_spark_is_not_installed(bare_project: Path) -> None:
    printed = python(
        """
        import sys

        class Without:
            # A finder of modules that does not find dbt-spark.
            def __init__(self, finder):
                self._finder = finder
            def __getattr__(self, name):
                return getattr(self._finder, name)
            def find_spec(self, name, path=None, target=None):
                if (name + ".").startswith("dbt.adapters.spark."):
                    return None
                return self._finder.find_spec(name, path, target)

        sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
        try:
            import dbt.adapters.spark
        except ImportError:
            print("hidden")
        from dbt.cli.main import dbtRunner
        for command in ("deps", "clean"):
            result = dbtRunner().invoke(["--quiet", command])
            assert result.success, result.exception
        from dbt_afterimage.dbt_spark.plugin import AfterimagePlugin
        AfterimagePlugin("bare")
        print("dbt_afterimage.dbt_spark.patches" in sys.modules)
        """,
        bare_project,
    )
    assert printed.split() == ["hidden", "False"]


def test_extending_twice_changes_nothing(tmp_path: Path) -> None:
    printed = python(
        """
        from dbt.adapters.spark import impl, session
        from dbt_afterimage.dbt_spark.plugin import AfterimagePlugin

        def state():
            adapter = impl.SparkAdapter
            return (
                session.Cursor.execute,
                adapter.default_python_submission_method,
                adapter.python_submission_helpers,
                adapter._available_,
                adapter.acquire_connection,
                adapter.cleanup_connections,
                adapter.set_macro_resolver,
                dict(adapter._parse_replacements_),
            )

        before = state()
        AfterimagePlugin("one")
        first = state()
        AfterimagePlugin("one")
        AfterimagePlugin("other")
        print(first != before, state() == first, "afterimage" in first[3])
        """,
        tmp_path,
    )
    assert printed.split() == ["True", "True", "True"]


def test_threads_extend_once(monkeypatch: pytest.MonkeyPatch, adapter_class: type[Any]) -> None:
    calls: list[int] = []
    entered = threading.Event()

    def slow() -> None:
        entered.wait(0.2)
        calls.append(1)

    class Fresh(adapter_class):  # type: ignore[misc]
        """Not extended itself."""

    monkeypatch.setattr(impl, "SparkAdapter", Fresh)
    monkeypatch.setattr(extension, "start_sessions_quietly", slow)
    with ThreadPoolExecutor(8) as threads:
        for future in [threads.submit(extension.extend_spark_adapter) for _ in range(8)]:
            future.result()
    assert calls == [1]


def test_python_models_run_in_the_session(adapter_class: type[Any]) -> None:
    adapter = adapter_class(credentials("session"))
    assert adapter.default_python_submission_method == "session"
    assert adapter.python_submission_helpers == {
        "other": object,
        "session": SessionPythonJobHelper,
    }


@pytest.mark.parametrize(("method", "is_recorded"), [("session", True), ("thrift", False)])
def test_progress_is_recorded_when_dbt_closes_its_connections(
    monkeypatch: pytest.MonkeyPatch, adapter_class: type[Any], method: str, is_recorded: bool
) -> None:
    sessions: list[str] = []
    monkeypatch.setattr(extension, "active", lambda: "session")
    monkeypatch.setattr(progress_cache, "end_command", sessions.append)
    adapter = adapter_class(credentials(method))
    adapter.cleanup_connections()
    assert sessions == (["session"] if is_recorded else [])
    assert adapter.is_closed


def assert_unchanged(adapter: Any) -> None:
    assert adapter.default_python_submission_method == "other"
    assert adapter.python_submission_helpers == {"other": object}
    assert list(adapter._get_columns_for_catalog("any")) == [{"column_type": "decimal(9,2)"}]
    assert adapter.acquire_connection("any") == "connection any"
    manifest: list[str] = []
    adapter.set_macro_resolver(manifest)
    assert manifest == ["taken"]


@pytest.mark.parametrize("method", ["thrift", "http", "odbc"])
def test_projects_with_another_method_behave_as_without_the_plugin(
    adapter_class: type[Any], method: str
) -> None:
    """Rows of a table in the catalog, for one, were counted in a local JVM."""
    assert_unchanged(adapter_class(credentials(method)))


@pytest.mark.parametrize("given", [SimpleNamespace(), credentials("session")])
def test_adapters_that_inherit_from_dbt_spark_behave_as_without_the_plugin(
    adapter_class: type[Any], given: Any
) -> None:
    """Databricks' adapter inherits dbt-spark's properties, and its credentials have no method."""

    class DatabricksAdapter(adapter_class):  # type: ignore[misc]
        def get_macro_resolver(self) -> Any:
            raise AssertionError("its manifest is not checked")

    assert_unchanged(DatabricksAdapter(given))


def test_manifests_are_documented_before_dbt_goes_on_with_them(
    monkeypatch: pytest.MonkeyPatch, adapter_class: type[Any]
) -> None:
    monkeypatch.setattr(extension, "document", lambda manifest: manifest.append("described"))
    for method, expected in (("session", ["described", "taken"]), ("thrift", ["taken"])):
        manifest: list[str] = []
        adapter_class(credentials(method)).set_macro_resolver(manifest)
        assert manifest == expected


def test_macros_get_an_answer_of_their_own_while_dbt_parses(adapter_class: type[Any]) -> None:
    assert adapter_class._available_ == {"get_relation", "afterimage"}
    assert adapter_class._parse_replacements_.keys() == {"get_relation", "afterimage"}
    api = adapter_class._parse_replacements_["afterimage"]
    api.settings({"name": "a"})["leaves"] = "a trace"
    assert api.settings({"name": "b"}) == {}
    assert api.table_format() == "iceberg"


def test_a_macro_that_misspells_a_method_gets_the_error_of_an_attribute() -> None:
    for api in (MacroApi(None), ParsingMacroApi()):
        with pytest.raises(AttributeError, match="'setings'"):
            _ = api.setings


def test_a_wrong_setting_is_an_error_of_dbt() -> None:
    with pytest.raises(DbtRuntimeError, match=r"Source table erp\.orders has no"):
        MacroApi(None).settings({"source_name": "erp", "name": "orders"})


@pytest.mark.parametrize(
    ("parameters", "table_format"),
    [
        (
            {
                "spark.sql.defaultCatalog": "lake",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            },
            "iceberg",
        ),
        (
            {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
            "delta",
        ),
        (
            {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"},
            "iceberg",
        ),
    ],
)
def test_the_table_format_follows_the_default_catalog(
    parameters: dict[str, str], table_format: str
) -> None:
    assert MacroApi(_adapter(parameters)).table_format() == table_format


def test_spark_s_own_catalog_is_no_iceberg_catalog() -> None:
    lake = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}
    session = {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"}
    for parameters, expected in (
        ({"spark.sql.defaultCatalog": "lake", **lake}, True),
        (lake, False),
        (session, False),
    ):
        assert MacroApi(_adapter(parameters)).is_iceberg_catalog() is expected


@pytest.mark.parametrize("parameters", [{}, {"spark.sql.defaultCatalog": "hive"}])
def test_a_catalog_without_merge_is_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(DbtRuntimeError, match=r"cannot be merged into\..*Fix: "):
        MacroApi(_adapter(parameters)).table_format()


def test_another_method_than_session_is_told_so_first() -> None:
    adapter = _adapter({"spark.sql.catalog.spark_catalog": "an.iceberg.Catalog"}, "thrift")
    with pytest.raises(DbtRuntimeError, match=r"`method` is thrift; allowed: session\..*Fix: "):
        MacroApi(adapter).table_format()


def _adapter(parameters: dict[str, str], method: str = "session") -> Any:
    return SimpleNamespace(config=SimpleNamespace(credentials=credentials(method, **parameters)))


# --- running a Python model


GENERATED = """

# --- what dbt appends ---
def ref(name):
    return {"known": 1}[name]

class dbtObj:
    ref = staticmethod(ref)

spark.append(model(dbtObj(), spark))
if spark[-1] is None:
    raise TypeError("a model must return rows")
"""

RunModel = Callable[..., list[Any]]


@pytest.fixture
def run_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RunModel]:
    """Runs a model as dbt does: stripped, with dbt's code after it, in a session that is a list."""
    monkeypatch.setattr(python_submission, "command_flag", lambda flag, otherwise: tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    lines_before = dict(linecache.cache)
    modules_before = set(sys.modules)

    def run(
        text: str, *, name: str = "orders", generated: str = GENERATED, before: str = "\n"
    ) -> list[Any]:
        file = Path("models") / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        session: list[Any] = []
        monkeypatch.setattr(python_submission, "live_session", lambda parameters: session)
        return submit(file, session, before + text.strip() + generated)

    def submit(file: Path, session: list[Any], compiled_code: str) -> list[Any]:
        model = {
            "name": file.stem,
            "unique_id": f"model.shop.{file.stem}",
            "original_file_path": str(file),
            "raw_code": file.read_text(encoding="utf-8").strip(),
        }
        own = SimpleNamespace(server_side_parameters={})
        SessionPythonJobHelper(model, own).submit(compiled_code)
        return session

    yield run
    assert not [name for name in set(linecache.cache) - set(lines_before) if "models" in name]
    assert not [name for name in set(sys.modules) - modules_before if "dbt_model" in name]


def error_of(run: RunModel, text: str, **options: Any) -> str:
    with pytest.raises(DbtRuntimeError) as caught:
        run(text, **options)
    return str(caught.value)


FAILING = '''\
"""A model."""

def double(value):
    return value * 2

def model(dbt, session):
    rows = dbt.ref("known")
    raise ValueError(f"no luck with {double(rows)}")
'''


def test_a_model_runs_in_the_session(run_model: RunModel) -> None:
    text = "def model(dbt, session):\n    return [dbt.ref('known'), session is spark]\n"
    assert run_model(text) == [[1, True]]


def test_a_model_sees_its_other_functions_and_imports(run_model: RunModel) -> None:
    text = """\
    from math import pi

    def half(x):
        return x / 2

    def model(dbt, session):
        return sum(half(pi) for _ in range(2)) == pi
    """
    assert run_model(textwrap.dedent(text)) == [True]


def test_the_session_is_started_with_the_profiles_parameters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    requested: list[Any] = []
    monkeypatch.setattr(python_submission, "live_session", requested.append)
    model = {"name": "m", "unique_id": "model.shop.m", "original_file_path": "m.py", "raw_code": ""}
    parameters = {"spark.master": "local[2]"}
    SessionPythonJobHelper(model, SimpleNamespace(server_side_parameters=parameters)).submit("")
    assert requested == [parameters]


def test_an_error_shows_file_line_text_and_message(run_model: RunModel) -> None:
    message = error_of(run_model, FAILING)
    assert "Python model orders failed at models/orders.py, line 8" in message
    assert 'File "models/orders.py", line 8, in model' in message
    assert 'raise ValueError(f"no luck with {double(rows)}")' in message
    assert "ValueError: no luck with 2" in message
    assert "python_submission" not in message, "frames of ours say nothing to the user"


@pytest.mark.parametrize("blank", ["\n\n\n", " \n\t\n\n", "\r\n\r\n\r\n"])
def test_blank_lines_on_top_of_the_file_count(run_model: RunModel, blank: str) -> None:
    """A file is stripped before dbt compiles it."""
    message = error_of(run_model, blank + FAILING)
    assert "failed at models/orders.py, line 11" in message
    assert 'raise ValueError(f"no luck with {double(rows)}")' in message


@pytest.mark.parametrize("before", ["", "\n", "\n\n    \n"])
def test_blank_lines_that_a_materialization_adds_do_not_count(
    run_model: RunModel, before: str
) -> None:
    assert "failed at models/orders.py, line 8" in error_of(run_model, FAILING, before=before)


def test_the_deepest_line_of_the_users_file_is_named(run_model: RunModel) -> None:
    text = """\
    import json

    def read(text):
        return json.loads(text)

    def model(dbt, session):
        return read("{")
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert "failed at models/orders.py, line 4" in message
    assert "line 7, in model" in message
    assert "JSONDecodeError" in message


def test_an_error_in_what_dbt_appends_names_the_line_that_called_it(run_model: RunModel) -> None:
    text = "def model(dbt, session):\n    return dbt.ref('unknown')\n"
    message = error_of(run_model, text)
    assert "failed at models/orders.py, line 2\n" in message
    assert "KeyError: 'unknown'" in message
    assert 'return {"known": 1}[name]' in message, "lines that dbt appended are shown too"


def test_an_error_outside_of_the_users_code_names_no_line_of_the_file(run_model: RunModel) -> None:
    message = error_of(run_model, "def model(dbt, session):\n    return None\n")
    assert "Python model orders failed at models/orders.py\n" in message
    assert "TypeError: a model must return rows" in message


def test_a_missing_model_function(run_model: RunModel) -> None:
    message = error_of(run_model, "def modell(dbt, session):\n    return []\n")
    assert "NameError: name 'model' is not defined" in message


def test_the_cause_of_an_error_is_shown(run_model: RunModel) -> None:
    text = """\
    def model(dbt, session):
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            raise RuntimeError("cannot divide") from error
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert "failed at models/orders.py, line 5" in message
    assert "ZeroDivisionError" in message
    assert "RuntimeError: cannot divide" in message


def test_an_error_of_this_package_shows_its_message_alone(
    run_model: RunModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback, which says nothing to a user, goes to dbt's log file."""
    logged: list[str] = []
    monkeypatch.setattr(python_submission, "logger", SimpleNamespace(debug=logged.append))
    text = """\
    from dbt_afterimage.change_log.deciding.gaps import GapError

    def model(dbt, session):
        try:
            return 1 / 0
        except ZeroDivisionError as error:
            raise GapError("orders_changes: changes may be lost. Fix: accept it.") from error
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert message.strip().endswith("orders_changes: changes may be lost. Fix: accept it.")
    assert "Traceback" not in message
    assert "models/orders.py" not in message
    (traceback,) = logged
    assert "failed at models/orders.py, line 7" in traceback
    assert "ZeroDivisionError" in traceback


def test_an_error_of_the_users_own_with_one_of_ours_as_its_cause_shows_both(
    run_model: RunModel,
) -> None:
    text = """\
    from dbt_afterimage.change_log.deciding.gaps import GapError

    def model(dbt, session):
        try:
            raise GapError("changes may be lost")
        except GapError as error:
            raise RuntimeError("do not publish") from error
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert "GapError: changes may be lost" in message
    assert "RuntimeError: do not publish" in message
    assert "Traceback" in message


def test_sparks_plan_is_left_out_and_nothing_after_it(run_model: RunModel) -> None:
    text = """\
    class AnalysisError(Exception):
        pass

    def model(dbt, session):
        try:
            raise AnalysisError("[NO] no x. SQLSTATE: 42703; line 1 pos 8;\\n'Project\\n+- R")
        except AnalysisError as error:
            raise RuntimeError("a hint of the user's") from error
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert "AnalysisError: [NO] no x. SQLSTATE: 42703; line 1 pos 8;" in message
    assert "\n+- R" not in message
    assert message.rstrip().endswith("RuntimeError: a hint of the user's")


def test_a_syntax_error_shows_its_line(run_model: RunModel) -> None:
    message = error_of(run_model, "def model(dbt, session):\n    return (\n")
    assert "failed at models/orders.py, line 2" in message
    assert "SyntaxError" in message
    assert "python_submission" not in message


@pytest.mark.parametrize("exit_with", ["sys.exit(3)", "raise SystemExit", "exit()"])
def test_a_model_that_exits_fails_instead_of_ending_dbts_thread(
    run_model: RunModel, exit_with: str
) -> None:
    """A thread that ends with SystemExit never reports back, and dbt would wait for ever."""
    text = f"import sys\n\ndef model(dbt, session):\n    {exit_with}\n"
    message = error_of(run_model, text)
    assert "failed at models/orders.py, line 4" in message
    assert "SystemExit" in message


def test_an_interrupt_goes_through(run_model: RunModel) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_model("def model(dbt, session):\n    raise KeyboardInterrupt\n")


def test_dbts_own_errors_keep_their_text(run_model: RunModel) -> None:
    text = """\
    from dbt_common.exceptions import DbtRuntimeError

    def model(dbt, session):
        raise DbtRuntimeError("said already")
    """
    message = error_of(run_model, textwrap.dedent(text))
    assert "said already" in message
    assert "models/orders.py, line 4" in message


def test_dataclasses_with_postponed_annotations_work(run_model: RunModel) -> None:
    """`dataclass` resolves its class's module, so the code must run in one that is known."""
    text = """\
    from __future__ import annotations

    from dataclasses import dataclass

    @dataclass
    class Rate:
        value: float

    def model(dbt, session):
        return Rate(2.5).value
    """
    assert run_model(textwrap.dedent(text)) == [2.5]


def test_functions_travel_to_sparks_workers(run_model: RunModel) -> None:
    """Workers do not know the model's module, so its functions must be pickled with their code."""
    text = """\
    from pyspark import cloudpickle

    RATE = 3

    def helper(x):
        return x * RATE

    def model(dbt, session):
        return cloudpickle.dumps(lambda x: helper(x) + 1)
    """
    (pickled,) = run_model(textwrap.dedent(text))
    assert pickle.loads(pickled)(2) == 7


def test_a_failed_run_leaves_nothing_for_the_next(run_model: RunModel) -> None:
    error_of(run_model, "LEFT = 1\n" + FAILING)
    assert run_model("def model(dbt, session):\n    return 'LEFT' in globals()\n") == [False]


def test_models_in_several_threads_do_not_mix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count = 8
    together = threading.Barrier(count)
    session: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(python_submission, "live_session", lambda parameters: session)
    monkeypatch.setattr(python_submission, "together", together, raising=False)

    def run(number: int) -> str:
        file = Path(f"model_{number}.py")
        text = (
            "from dbt_afterimage.dbt_spark import python_submission\n"
            + "\n" * number
            + f"def model(dbt, session):\n    mine = {number}\n"
            + "    python_submission.together.wait(30)\n"
            + f"    raise ValueError(f'model {{mine}} in {{__name__}}')  # {number}"
        )
        file.write_text(text, encoding="utf-8")
        model = {
            "name": file.stem,
            "unique_id": f"model.shop.{file.stem}",
            "original_file_path": str(file),
            "raw_code": text,
        }
        helper = SessionPythonJobHelper(model, SimpleNamespace(server_side_parameters={}))
        with pytest.raises(DbtRuntimeError) as caught:
            helper.submit("\n" + text + GENERATED)
        return str(caught.value)

    with ThreadPoolExecutor(count) as threads:
        messages = list(threads.map(run, range(count)))
    for number, message in enumerate(messages):
        assert f"model_{number} failed at model_{number}.py, line {number + 5}\n" in message
        assert f"ValueError: model {number} in " in message
        assert f"# {number}" in message, "the text of the line"
    assert not [name for name in linecache.cache if name.startswith("model_")]
    assert not [name for name in sys.modules if "dbt_model" in name]


# --- starting Spark


def test_a_jvm_that_does_not_start_shows_why(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(
        BARE_PROJECT.replace("profile: bare", "profile: afterimage"), encoding="utf-8"
    )
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "ask.sql").write_text(
        "{% macro ask() %}{{ run_query('select 1') }}{% endmacro %}", encoding="utf-8"
    )
    example = (ROOT / "profiles.yml.example").read_text(encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(example, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "spark.log").write_text("of a run before\n", encoding="utf-8")
    java = tmp_path / "broken" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/sh\n[ "$*" = -version ] && echo \'version "17"\' || echo "broken Java" >&2\n',
        encoding="utf-8",
    )
    java.chmod(0o755)
    printed = python(
        """
        from dbt.cli.main import dbtRunner
        dbtRunner().invoke(["run-operation", "ask", "--log-path", "elsewhere"])
        """,
        tmp_path,
        JAVA_HOME=str(tmp_path / "broken"),
        AFTERIMAGE_WAREHOUSE=str(tmp_path / "warehouse"),
    )
    assert "Spark did not start" in printed
    assert "broken Java" in printed
    assert "Fix: set JAVA_HOME to the folder of a Java 17 or 21" in printed
    assert "of a run before" not in printed
    # Spark's log is next to dbt's own.
    assert (tmp_path / "elsewhere" / "spark.log").is_file()
    assert not (tmp_path / "logs").exists()


def test_a_page_can_break_the_types_of_the_catalog() -> None:
    given = {"column_name": "before", "column_type": "struct<a:int,b:decimal(9,2)>"}
    (column,) = readable_columns("any", [given])
    assert column == {"column_name": "before", "column_type": "struct<a:int, b:decimal(9, 2)>"}
