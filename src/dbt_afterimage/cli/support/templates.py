"""Templates of files that commands write; the files have braces of their own, so these have not."""

from __future__ import annotations

from typing import Any


def templates_of(package: str) -> Any:
    """A Jinja environment over a package's folder `templates`: `[[ value ]]`, `[% block %]`."""
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
