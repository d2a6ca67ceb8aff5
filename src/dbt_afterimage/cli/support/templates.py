"""Templates of files that commands write; the files have braces of their own, so these have not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any


def rendered(
    package: str,
    template: str,
    filters: Mapping[str, Any] = MappingProxyType({}),
    **values: Any,
) -> str:
    """A template of a package's folder `templates`: `[[ value ]]`, `[% block %]`."""
    environment = _environment(package)
    environment.filters.update(filters)
    text: str = environment.get_template(f"{template}.jinja").render(**values)
    return text


@cache
def _environment(package: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, "templates"),
        undefined=StrictUndefined,
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
