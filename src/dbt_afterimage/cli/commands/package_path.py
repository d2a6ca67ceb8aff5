"""`afterimage package-path`: where the macros are that this Python package was installed with."""

from __future__ import annotations

from pathlib import Path

import typer

import dbt_afterimage
from dbt_afterimage.cli.frame import command


def dbt_package_folder() -> Path:
    """The folder of the dbt package: inside the installed wheel, or the root of a clone."""
    module = Path(dbt_afterimage.__file__).resolve().parent
    installed = module / "dbt_package"
    return installed if installed.is_dir() else module.parents[1]


@command(
    "package-path",
    example="printf 'packages:\\n  - local: %s\\n' \"$(afterimage package-path)\" > packages.yml",
)
def package_path() -> None:
    """Print the folder of the dbt package, for `local:` in packages.yml.

    The path is relative if the folder is below the current one, as with a .venv in the project.
    Run `dbt deps` after each upgrade of the Python package.
    """
    folder = dbt_package_folder()
    here = Path.cwd().resolve()
    if folder != here and folder.is_relative_to(here):
        folder = folder.relative_to(here)
    typer.echo(folder.as_posix())
