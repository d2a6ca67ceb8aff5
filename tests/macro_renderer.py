"""Renders the project's macros to text in milliseconds: without dbt, without Spark, without a JVM.

dbt's own Jinja needs a project that was parsed. Here the files of `macros/` are loaded with plain
Jinja, and what dbt provides (`source`, `var`, `exceptions`, `return`, ...) is a few stubs. Any of
them, and any macro, can be replaced:

    render = MacroRenderer(_raw_columns=lambda relation: [{"name": "id", "data_type": "int"}])
    render("qlik_change_operation", "oper")                    # the macro's text
    normalised(render("change_seq_to_timestamp", "seq"))       # in one line, to compare with
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any, NoReturn

from jinja2 import Environment, StrictUndefined, Template

from dbt_afterimage.dbt_spark import macro_api  # noqa: F401  registers the methods
from dbt_afterimage.dbt_spark.macro_api.registry import MacroApi

MACROS = Path(__file__).parents[1] / "macros"

# dbt puts a prefix before the name as well: Jinja exports no name that begins with `_`.
_PREFIX = "dbt_macro__"
_DEFINITION = re.compile(r"(\{%-?\s*)(macro|test)\s+([A-Za-z_0-9]+)")


class CompilationError(Exception):
    """A macro called `exceptions.raise_compiler_error`; the text is what the user would see."""


class MacroRenderer:
    """All macros and generic tests of a folder, called by name.

    Args:
        folder: is searched for `*.sql`, at any depth. Materializations are left out.
        replacements: things that macros find by name, dbt's or macros, instead of the real ones.
    """

    def __init__(self, folder: Path = MACROS, **replacements: Any) -> None:
        environment = _environment()
        files = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.sql"))}
        texts = {path: text for path, text in files.items() if "endmaterialization" not in text}
        self._macros: dict[str, Any] = {}
        # Macros call each other by name whatever file they are in, so all names come first.
        environment.globals.update(_dbt())
        for text in texts.values():
            for _, kind, name in _DEFINITION.findall(text):
                full_name = f"test_{name}" if kind == "test" else name
                environment.globals[full_name] = self._caller(full_name)
        environment.globals.update(replacements)
        replaced = getattr(replacements.get("adapter"), "afterimage", None)
        environment.globals["adapter"] = SimpleNamespace(afterimage=_MacroApi(replaced))
        environment.globals["afterimage"] = _Package(environment.globals)
        for text in texts.values():
            template = Template.from_code(environment, _compiled(text), environment.globals)
            for name, macro in vars(template.module).items():
                if name.startswith(_PREFIX):
                    self._macros[name.removeprefix(_PREFIX)] = macro

    def __call__(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """What a macro returns, or else the text that it renders, without white space around it.

        Raises:
            CompilationError: the macro refuses its arguments.
        """
        value = self._caller(name)(*arguments, **keywords)
        return value.strip() if isinstance(value, str) else value

    def arguments(self, name: str) -> tuple[str, ...]:
        """The names of a macro's arguments, in order."""
        return tuple(self._macros[name].arguments)

    def _caller(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                return self._macros[name](*arguments, **keywords)
            except _ReturnedError as returned:
                return returned.value

        return call


class _Package:
    """The package's namespace: macros call each other by it, so that they work from any project."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return self._names[name]


class _MacroApi:
    """`adapter.afterimage`: what a test replaces, and the real methods, without an adapter."""

    def __init__(self, replaced: object) -> None:
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        if hasattr(self._replaced, name):
            return getattr(self._replaced, name)
        return getattr(MacroApi(None), name)


def normalised(sql: str) -> str:
    """SQL in one line, with one space where there was white space, and none inside brackets."""
    return re.sub(r"(?<=\() | (?=\))", "", " ".join(sql.split()))


class _ReturnedError(Exception):
    """Carries what a macro hands to `return`, which ends it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def _environment() -> Environment:
    return Environment(extensions=["jinja2.ext.do"], undefined=StrictUndefined)


@cache
def _compiled(text: str) -> CodeType:
    """A file's code, for all renderers: to compile all files takes a second."""
    return _environment().compile(_as_plain_jinja(text))


def _as_plain_jinja(text: str) -> str:
    text = _DEFINITION.sub(
        lambda found: f"{found[1]}macro {_PREFIX}{'test_' * (found[2] == 'test')}{found[3]}", text
    )
    return text.replace("endtest", "endmacro")


def _dbt() -> dict[str, Any]:
    """What dbt provides to macros, as far as the project's macros use it in tests."""

    def return_(value: Any = None) -> NoReturn:
        raise _ReturnedError(value)

    def raise_compiler_error(message: str) -> NoReturn:
        raise CompilationError(message)

    def warn(message: str) -> None:
        warnings.warn(message, stacklevel=2)

    return {
        "config": lambda **_: "",
        "execute": True,
        "flags": SimpleNamespace(WHICH="compile"),
        "exceptions": SimpleNamespace(raise_compiler_error=raise_compiler_error, warn=warn),
        "modules": SimpleNamespace(re=re),
        "return": return_,
        "local_md5": lambda text: hashlib.md5(text.encode()).hexdigest(),  # as dbt
        "tojson": json.dumps,
        "source": lambda source_name, table_name: f"{source_name}.{table_name}",
        "ref": lambda name: name,
        "var": lambda name, default=None: default,
    }
