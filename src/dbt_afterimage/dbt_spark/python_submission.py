"""Runs a compiled Python model in the Spark session that lives in the dbt process."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from dbt.adapters.base.impl import PythonJobHelper
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.statements import command_flag, live_session
from dbt_afterimage.errors import explained, has_explanation, is_ours, without_plan
from dbt_afterimage.spark.session import why_java_ended

logger = AdapterLogger("afterimage")


class SessionPythonJobHelper(PythonJobHelper):
    """Made by dbt for one Python model, which calls ``submit`` once, in the model's thread."""

    def __init__(self, parsed_model: dict[str, Any], credentials: Any) -> None:
        self._name = parsed_model["name"]
        self._module = "dbt_model_" + parsed_model["unique_id"].replace(".", "_")
        self._file = str(Path(parsed_model["original_file_path"]))
        self._raw_code = parsed_model["raw_code"]
        self._parameters = credentials.server_side_parameters

    def submit(self, compiled_code: str) -> None:
        """Run the code; it defines ``model``, calls it and writes the result.

        Args:
            compiled_code: the user's file, stripped, followed by what dbt generates.

        Raises:
            DbtRuntimeError: whatever the code raises, with the user's file, line and traceback;
                of an error of this package the message alone, the traceback goes to dbt's log.
        """
        session = live_session(self._parameters)
        lines_on_top = self._blank_lines_on_top()
        code = "\n" * lines_on_top + compiled_code.lstrip()
        with _known_lines(self._file, code), _known_module(self._module) as module:
            namespace = module.__dict__
            namespace["spark"] = session
            try:
                exec(compile(code, self._file, "exec"), namespace)
            # A thread that ends with SystemExit never reports back, and dbt would wait for ever.
            except (Exception, SystemExit) as error:
                end_of_java = why_java_ended(error)
                if end_of_java:
                    raise DbtRuntimeError(end_of_java) from error
                end = lines_on_top + self._raw_code.count("\n") + 1
                description = _describe(error, self._name, self._file, end)
                if not is_ours(error) and not has_explanation(str(error)):
                    raise DbtRuntimeError(description) from error
                logger.debug(description)
                if not is_ours(error):
                    raise DbtRuntimeError(explained(str(error))) from error
                raise DbtRuntimeError(str(error)) from error

    def _blank_lines_on_top(self) -> int:
        """Lines that dbt stripped off the file's top: a line number is to be that of the file."""
        try:
            file = Path(command_flag("PROJECT_DIR", "."), self._file)
            text = file.read_text(encoding="utf-8")
        except OSError:  # a model of a package: dbt does not say where the package is
            return 0
        return text[: len(text) - len(text.lstrip())].count("\n")


@contextmanager
def _known_lines(file: str, code: str) -> Iterator[None]:
    """While this lasts, tracebacks find the text of each line of ``code``, dbt's lines included."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    try:
        yield
    finally:
        linecache.cache.pop(file, None)


@contextmanager
def _known_module(name: str) -> Iterator[ModuleType]:
    """An importable module while this lasts: dataclasses, for one, look up the module they are in.

    Spark's workers cannot import it, so its functions are pickled with their code.
    """
    from pyspark import cloudpickle

    module = ModuleType(name)
    sys.modules[name] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield module
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
        del sys.modules[name]


def _describe(error: BaseException, name: str, file: str, end: int) -> str:
    """The user's part of the traceback, with the place in the user's file on top.

    Args:
        end: number of lines of the file; what dbt appended has greater ones.
    """
    frames = _from_file(error.__traceback__, file)
    numbers = [
        frame.lineno
        for frame in traceback.extract_tb(frames)
        if frame.filename == file and frame.lineno is not None and frame.lineno <= end
    ]
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno is not None:
        numbers.append(error.lineno)
    where = f"{file}, line {numbers[-1]}" if numbers else file
    shown = "".join(traceback.format_exception(type(error), error, frames))
    return f"Python model {name} failed at {where}\n{without_plan(shown)}"


def _from_file(frames: TracebackType | None, file: str) -> TracebackType | None:
    """The traceback from the first frame in ``file`` on: dbt's own frames say nothing to a user."""
    while frames is not None and frames.tb_frame.f_code.co_filename != file:
        frames = frames.tb_next
    return frames
