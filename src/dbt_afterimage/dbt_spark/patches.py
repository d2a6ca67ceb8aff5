"""Adds to dbt-spark's adapter class: Python models, methods that macros call, a readable catalog.

dbt-spark 1.11 can submit Python models to Databricks only. Under ``method: session`` Spark runs in
the dbt process, so a Python model can run right there.
"""

from __future__ import annotations

import copy
import threading
from typing import Any

from dbt.adapters.spark import impl
from dbt.adapters.spark.connections import SparkConnectionMethod

from dbt_afterimage.dbt_spark.catalog import make_catalog_readable
from dbt_afterimage.dbt_spark.macro_api import METHODS
from dbt_afterimage.dbt_spark.python_submission import SessionPythonJobHelper
from dbt_afterimage.dbt_spark.session import start_sessions_quietly

SUBMISSION_METHOD = "session"
_MARK = "_afterimage_extended"
_extending = threading.Lock()


def extend_spark_adapter() -> None:
    """Extend ``SparkAdapter`` in place. Calling it again changes nothing."""
    with _extending:
        adapter = impl.SparkAdapter
        if getattr(adapter, _MARK, False):
            return
        _add_python_submission(adapter)
        _add_methods(adapter)
        make_catalog_readable(adapter)
        start_sessions_quietly()
        setattr(adapter, _MARK, True)


def _add_python_submission(adapter: type[Any]) -> None:
    default_method = adapter.default_python_submission_method.fget
    helpers = adapter.python_submission_helpers.fget

    def default_python_submission_method(self: Any) -> str:
        if self.config.credentials.method == SparkConnectionMethod.SESSION:
            return SUBMISSION_METHOD
        return str(default_method(self))

    def python_submission_helpers(self: Any) -> dict[str, Any]:
        return {**helpers(self), SUBMISSION_METHOD: SessionPythonJobHelper}

    adapter.default_python_submission_method = property(default_python_submission_method)
    adapter.python_submission_helpers = property(python_submission_helpers)


def _add_methods(adapter: type[Any]) -> None:
    # AdapterMeta collects what Jinja may call when the class is made; for methods that come later
    # its two collections are extended by hand. Nothing is called while dbt parses.
    for name, (method, while_parsing) in METHODS.items():
        setattr(adapter, name, method)
        adapter._available_ = adapter._available_ | {name}
        adapter._parse_replacements_ = {
            **adapter._parse_replacements_,
            # a copy: what one macro puts into it is nothing to the next
            name: lambda *args, _answer=while_parsing, **kwargs: copy.copy(_answer),
        }
