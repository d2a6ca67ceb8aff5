"""Adds to dbt-spark's adapter class: Python models, methods for macros, checks, documentation.

docs/internals/plugin.md says what is changed, why, and what breaks when dbt changes it. Adapters
that inherit from dbt-spark's, such as Databricks', keep the behaviour that they inherit, and so
does dbt-spark's own under another `method` than `session`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from dbt.adapters.spark import impl
from dbt.adapters.spark.connections import SparkConnectionMethod

from dbt_afterimage.dbt_spark.catalog import readable_columns
from dbt_afterimage.dbt_spark.documentation import document
from dbt_afterimage.dbt_spark.macro_api.registry import MacroApi, ParsingMacroApi, dbt_errors
from dbt_afterimage.dbt_spark.preflight import check_after_parsing, check_before_connecting
from dbt_afterimage.dbt_spark.python_submission import SessionPythonJobHelper
from dbt_afterimage.dbt_spark.statements import start_sessions_quietly
from dbt_afterimage.spark.session import active, current

SUBMISSION_METHOD = "session"
_EXTENDED_FLAG = "_afterimage_extended"
_extending = threading.Lock()


def extend_spark_adapter() -> None:
    """Extend ``SparkAdapter`` in place. Calling it again changes nothing."""
    with _extending:
        adapter = impl.SparkAdapter
        # not inherited: the class, not one of its bases, was extended
        if _EXTENDED_FLAG in vars(adapter):
            return
        _add_python_submission(adapter)
        _make_catalog_readable(adapter)
        _add_macro_api(adapter)
        _document_manifests(adapter)
        _check_before_connecting(adapter)
        _record_progress_at_the_end(adapter)
        _read_stored_views()
        start_sessions_quietly()
        setattr(adapter, _EXTENDED_FLAG, True)


def _runs_in_session(adapter: Any) -> bool:
    """Whether this is dbt-spark's own adapter, and Spark runs in the dbt process."""
    if type(adapter) is not impl.SparkAdapter:
        return False
    return bool(adapter.config.credentials.method == SparkConnectionMethod.SESSION)


def _add_python_submission(adapter: type[Any]) -> None:
    default_method = adapter.default_python_submission_method.fget
    helpers = adapter.python_submission_helpers.fget

    def default_python_submission_method(self: Any) -> str:
        return SUBMISSION_METHOD if _runs_in_session(self) else str(default_method(self))

    def python_submission_helpers(self: Any) -> dict[str, Any]:
        if not _runs_in_session(self):
            return dict(helpers(self))
        return {**helpers(self), SUBMISSION_METHOD: SessionPythonJobHelper}

    adapter.default_python_submission_method = property(default_python_submission_method)
    adapter.python_submission_helpers = property(python_submission_helpers)


def _make_catalog_readable(adapter: type[Any]) -> None:
    columns_for_catalog = adapter._get_columns_for_catalog

    def _get_columns_for_catalog(self: Any, relation: Any) -> Iterator[dict[str, Any]]:
        columns = columns_for_catalog(self, relation)
        return readable_columns(relation, columns) if _runs_in_session(self) else columns

    adapter._get_columns_for_catalog = _get_columns_for_catalog


def _add_macro_api(adapter: type[Any]) -> None:
    # AdapterMeta collects what macros may call when the class is made; for what comes later its two
    # collections are extended here. Under every method: check_session says which one is allowed.
    adapter.afterimage = property(MacroApi)
    adapter._available_ = adapter._available_ | {"afterimage"}
    adapter._parse_replacements_ = {
        **adapter._parse_replacements_,
        "afterimage": ParsingMacroApi(),
    }


def _document_manifests(adapter: type[Any]) -> None:
    set_macros = adapter.set_macro_resolver

    def set_macro_resolver(self: Any, macro_resolver: Any) -> None:
        # dbt gives the adapter each manifest, to find macros in: once it is parsed, before it is
        # written and before nodes are selected
        if _runs_in_session(self):
            document(macro_resolver)
        set_macros(self, macro_resolver)
        if type(self) is impl.SparkAdapter:
            check_after_parsing(self)

    adapter.set_macro_resolver = set_macro_resolver


def _check_before_connecting(adapter: type[Any]) -> None:
    acquire = adapter.acquire_connection

    def acquire_connection(self: Any, name: str | None = None) -> Any:
        # under every method: a project that uses the package is told which one is allowed
        if type(self) is impl.SparkAdapter:
            check_before_connecting(self)
        return acquire(self, name)

    adapter.acquire_connection = acquire_connection


def _record_progress_at_the_end(adapter: type[Any]) -> None:
    cleanup = adapter.cleanup_connections

    def cleanup_connections(self: Any) -> None:
        # dbt calls it at the end of each command, also where models have failed
        session = active()
        if session is not None and _runs_in_session(self):
            from dbt_afterimage.storage.compaction import compact_written
            from dbt_afterimage.storage.progress_cache import end_command

            end_command(session)
            compact_written(session)
        cleanup(self)

    adapter.cleanup_connections = cleanup_connections


def _read_stored_views() -> None:
    from dbt.context.providers import RuntimeRefResolver

    resolver: type[Any] = RuntimeRefResolver
    create = resolver.create_relation

    def create_relation(self: Any, target_model: Any) -> Any:
        relation = create(self, target_model)
        adapter = self.db_wrapper._adapter
        if target_model.config.materialized != "staging_view" or not _runs_in_session(adapter):
            return relation
        return _readable_relation(adapter, relation)

    resolver.create_relation = create_relation


def _readable_relation(adapter: Any, relation: Any) -> Any:
    """The relation that reads a staging model: another one if a table keeps its statement."""
    found = adapter.get_relation(relation.database, relation.schema, relation.identifier)
    if found is None or found.is_view:
        return relation
    from dbt_afterimage.storage.stored_view import readable_name

    with dbt_errors():
        name = readable_name(current(), str(relation))
    if name == str(relation):
        return relation
    return relation.incorporate(path={"database": None, "schema": None, "identifier": name})
