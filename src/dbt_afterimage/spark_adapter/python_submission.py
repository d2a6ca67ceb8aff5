"""Runs a compiled Python model in the Spark session that lives in the dbt process."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from dbt.adapters.base import PythonJobHelper
from dbt_common.exceptions import DbtRuntimeError


class SessionPythonJobHelper(PythonJobHelper):  # type: ignore[misc]  # dbt ships no types for it
    """dbt makes one per Python model and calls ``submit`` once, from the model's thread."""

    def __init__(self, parsed_model: dict[str, Any], credentials: Any) -> None:
        self._name = parsed_model["name"]
        self._file = parsed_model["original_file_path"]

    def submit(self, compiled_code: str) -> None:
        """Run the code; it defines ``model``, calls it and writes the result.

        Args:
            compiled_code: the user's file as it is, followed by what dbt generates.

        Raises:
            DbtRuntimeError: anything that the code raises, with the user's file, line and traceback.
        """
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        # The user's code stands first in the compiled code, so its line numbers are those of the
        # file. What dbt appends has lines past the end of the file: linecache must know them too.
        file = str(Path(self._file))
        linecache.cache[file] = (
            len(compiled_code),
            None,
            compiled_code.splitlines(keepends=True),
            file,
        )
        namespace: dict[str, Any] = {"__name__": f"dbt_model_{self._name}", "spark": session}
        try:
            exec(compile(compiled_code, file, "exec"), namespace)  # noqa: S102  # the user's own model
        except Exception as error:
            raise DbtRuntimeError(_describe(error, self._name, file)) from error
        finally:
            linecache.cache.pop(file, None)
            namespace.clear()


def _describe(error: Exception, name: str, file: str) -> str:
    """The user's part of the traceback, with the last line of the user's file on top."""
    frames = _from_file(error.__traceback__, file)
    summary = traceback.extract_tb(frames)
    line = next((f.lineno for f in reversed(summary) if f.filename == file), None)
    where = f"{file}, line {line}" if line else file
    shown = "".join(traceback.format_exception(type(error), error, frames))
    return f"Python model {name} failed at {where}\n{shown}"


def _from_file(frames: TracebackType | None, file: str) -> TracebackType | None:
    """The traceback from the first frame in ``file`` on: dbt's own frames say nothing to a user."""
    start = frames
    while start is not None and start.tb_frame.f_code.co_filename != file:
        start = start.tb_next
    return start or frames
