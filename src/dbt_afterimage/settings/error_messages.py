"""The text of an error: which setting of which table, what it got, what is allowed, the fix."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from dbt_afterimage.settings.base import Base
from dbt_afterimage.settings.suggestions import did_you_mean


def explain(table: str, model: type[BaseModel], error: ValidationError) -> str:
    """The problems of a table's settings as text for the user, a line each."""
    lines = [
        f"Source table {table}: {_explain_one(model, dict(problem))}" for problem in error.errors()
    ]
    # If several types are allowed, pydantic reports why each of them does not match.
    return "\n".join(dict.fromkeys(lines))


def _explain_one(model: type[BaseModel], problem: dict[str, Any]) -> str:
    path = problem["loc"]
    own_words = str(problem["msg"]).removeprefix("Value error, ")
    if not path:
        return f"{own_words}."
    owner = Base if path[0] == "base" and len(path) > 1 else model
    of_owner = path[1:] if owner is Base else path
    setting = str(of_owner[0])
    name = f"base.{setting}" if owner is Base else setting
    names = list(owner.model_fields)
    if problem["type"] == "extra_forbidden":
        return (
            f"unknown setting `{name}`.{did_you_mean(setting, names)} "
            f"Allowed: {', '.join(names)}. Fix: correct the name, or remove it."
        )
    field = owner.model_fields[setting]
    allowed = f"Allowed: {', '.join(_allowed_values(field.annotation, _whole_numbers(field)))}."
    if problem["type"] == "missing":
        return f"the setting `{name}` is missing. {allowed} Fix: add it."
    verb = "holds" if any(isinstance(part, int) for part in of_owner) else "is"
    reason = f"{own_words}." if problem["type"] == "value_error" else allowed
    fix = "Fix: correct it."
    if not field.is_required():
        default = field.get_default(call_default_factory=True)
        fix = f"Fix: correct it, or leave it out (default: {default!r})."
    return f"`{name}` {verb} {problem['input']!r}. {reason} {fix}"


def _whole_numbers(field: FieldInfo) -> str:
    """The numbers that a setting may be, in words."""
    bounds = {
        name: getattr(bound, name)
        for bound in field.metadata
        for name in ("ge", "le")
        if hasattr(bound, name)
    }
    least, greatest = bounds.get("ge", 0), bounds.get("le")
    if greatest is None:
        return f"a whole number from {least} on"
    return str(least) if least == greatest else f"a whole number from {least} to {greatest}"


def _allowed_values(annotation: Any, whole_numbers: str) -> list[str]:
    words = {
        bool: "true, false",
        int: whole_numbers,
        str: "text",
        Base: "a mapping, such as {kind: frozen}",
    }
    if annotation in words:
        return [words[annotation]]
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if get_origin(annotation) is list:
        return ["a list of column names, such as [order_id]"]
    if get_origin(annotation) is dict:
        return ["a mapping of names to texts"]
    return [
        value for part in get_args(annotation) for value in _allowed_values(part, whole_numbers)
    ]
