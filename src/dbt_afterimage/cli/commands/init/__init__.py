"""`afterimage init`: a new dbt project that uses afterimage, or what an existing one lacks."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dbt_afterimage.cli.frame import UsageProblem, command


@command("init", example="afterimage init warehouse_history\nafterimage init . --yes")
def init(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the project; created if missing.", file_okay=False)
    ] = Path(),
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before an existing file is changed.")
    ] = False,
) -> None:
    """Create a dbt project that uses afterimage, or add what an existing project lacks.

    In a folder with a dbt_project.yml only the entry in packages.yml and the `dispatch` block are
    added: the lines are shown, and written once you agree. Nothing else is changed.
    """
    from dbt_afterimage.cli.commands.init.project_files import additions, new_project, project_name
    from dbt_afterimage.cli.commands.package_path import dbt_package_folder
    from dbt_afterimage.cli.support.file_changes import changes, write

    source = dbt_package_folder()
    home = folder.resolve()
    package = (source.relative_to(home) if source.is_relative_to(home) else source).as_posix()
    is_new = not (folder / "dbt_project.yml").exists()
    if is_new:
        example = (source / "profiles.yml.example").read_text(encoding="utf-8")
        wanted = new_project(project_name(folder), package, example)
        # of a folder that is not a dbt project yet, such as a clone of an empty repository
        wanted = {path: text for path, text in wanted.items() if not (folder / path).exists()}
    else:
        wanted = additions(folder, package)
    found = changes(folder, wanted)
    if not found:
        typer.echo(f"{home}: nothing to add.")
    elif not is_new:
        for change in found:
            typer.echo(change.diff())
        if not yes:
            if not sys.stdin.isatty():
                raise UsageProblem(
                    "`init` changes files of an existing project and cannot ask here. Fix: add "
                    "--yes to write the lines shown above."
                )
            typer.confirm("Write these lines?", abort=True)
    try:
        write(folder, found)
    except OSError as error:
        raise UsageProblem(
            f"{home}: {error.strerror}: {error.filename}. Fix: name a folder that you can write to."
        ) from error
    for change in found:
        typer.echo(f"{'created' if change.old is None else 'changed'} {change.path}")
    if not is_new:
        typer.echo(f"The settings that Spark needs are in {source / 'profiles.yml.example'}")
    enter = "" if home == Path.cwd() else f"cd {shlex.quote(os.path.relpath(home))} && "
    check = "" if is_new else "afterimage doctor, which checks your profile and its catalog, "
    typer.echo(f"Next: {enter}dbt deps, then {check}afterimage add-table SCHEMA.TABLE")
