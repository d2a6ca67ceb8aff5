"""The files of a project that uses afterimage: all of a new one, what an existing one lacks."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from dbt_afterimage import __version__
from dbt_afterimage.cli.support.templates import rendered
from dbt_afterimage.errors import AfterimageError

_rendered = partial(rendered, "dbt_afterimage.cli.commands.init")

# The profile that the package ships has this name and this schema.
_SHIPPED = "afterimage"
PACKAGE_VARIABLE = "AFTERIMAGE_PACKAGE"


class UnclearProjectError(AfterimageError):
    """An existing file cannot be completed without a decision of its owner."""


def new_project(name: str, package: str, profiles: str) -> dict[str, str]:
    """The files of a new project: path -> text.

    Args:
        name: of the project, its profile and its schema.
        package: folder of the dbt package, absolute or relative to the project.
        profiles: the text of the package's `profiles.yml.example`.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    dispatch = _rendered("dispatch.yml", name=name)
    return {
        "dbt_project.yml": _rendered("dbt_project.yml", name=name, dispatch=dispatch),
        "packages.yml": f"packages:\n{_package_entry(package)}",
        "profiles.yml": _own_profiles(profiles, name),
        "requirements.txt": _requirements(),
        ".gitignore": _rendered("gitignore"),
        ".github/workflows/dbt.yml": _rendered("ci.yml", python=python),
        "README.md": _rendered("README.md", name=name),
        "models/marts/change_activity.sql": _rendered("activity.sql"),
        "models/marts/_change_activity__models.yml": _rendered("activity.yml"),
    }


def _requirements() -> str:
    line = f"dbt-afterimage[read]=={__version__}\n"
    if ".dev" not in __version__:
        return line
    return f"# no package index has this version: replace the line by the path of the wheel\n{line}"


def additions(folder: Path, package: str) -> dict[str, str]:
    """The files that an existing project lacks: path -> the whole new text of each changed file.

    Only lines are added: the entry in packages.yml (or dependencies.yml) and the `dispatch` block.

    Raises:
        UnclearProjectError: a file has the key already, with other content.
    """
    project = folder / "dbt_project.yml"
    text = project.read_text(encoding="utf-8")
    settings = _loaded(project)
    found: dict[str, str] = {}
    packages = folder / "packages.yml"
    if not packages.exists() and (folder / "dependencies.yml").exists():
        packages = folder / "dependencies.yml"
    listed = _loaded(packages).get("packages") if packages.exists() else None
    if not any("afterimage" in str(entry).lower() for entry in listed or []):
        # dependencies.yml is not rendered, so it cannot read a variable
        entry = _package_entry(package, is_rendered=packages.name == "packages.yml")
        old = packages.read_text(encoding="utf-8") if packages.exists() else ""
        found[packages.name] = _with_package(old, entry, packages)
    dispatch = settings.get("dispatch") or []
    of_dbt = next((d for d in dispatch if d.get("macro_namespace") == "dbt"), None)
    name = str(settings.get("name"))
    block = _rendered("dispatch.yml", name=name)
    if of_dbt is None and not dispatch:
        found["dbt_project.yml"] = text.rstrip("\n") + "\n\n" + block
    elif of_dbt is None or _SHIPPED not in (of_dbt.get("search_order") or []):
        raise UnclearProjectError(
            f"{project}: `dispatch` is there and does not name afterimage for macros of dbt. "
            f"Nothing was written. Fix: add `afterimage` before `dbt` to the `search_order` of "
            f"`macro_namespace: dbt`, as in:\n{block}"
        )
    return found


def project_name(folder: Path) -> str:
    """A dbt project's name from its folder's: letters, digits and underscores.

    Raises:
        UnclearProjectError: nothing is left, or it is the package's own name.
    """
    name = re.sub(r"\W+", "_", folder.resolve().name).strip("_").lower()
    if not name or name[0].isdigit() or name == _SHIPPED:
        raise UnclearProjectError(
            f"{folder.resolve()}: the folder's name gives the project the name {name!r}. Allowed: "
            f"letters, digits and underscores, no digit first, not {_SHIPPED!r}. Fix: name another "
            "folder, such as `afterimage init warehouse_history`."
        )
    return name


def _package_entry(package: str, is_rendered: bool = True) -> str:
    local = package
    if is_rendered:
        local = f"\"{{{{ env_var('{PACKAGE_VARIABLE}', '{package}') }}}}\""
    return f"  - local: {local}\n"


def _with_package(old: str, entry: str, file: Path) -> str:
    """The text of packages.yml with one more entry, first in its list."""
    if not old.strip():
        return f"packages:\n{entry}"
    head = re.search(r"^packages:[ ]*(#.*)?\n", old, re.M)
    first = re.search(r"^([ ]*)- ", old[head.end() :], re.M) if head else None
    if head and first:
        return old[: head.end()] + first[1] + entry.lstrip() + old[head.end() :]
    if not re.search(r"^packages\s*:", old, re.M):
        return old.rstrip("\n") + f"\n\npackages:\n{entry}"
    raise UnclearProjectError(
        f"{file}: `packages` is not a list of one entry a line. Nothing was written. Fix: add this "
        f"entry to it:\n{entry}"
    )


def _own_profiles(text: str, name: str) -> str:
    """The package's example profile under the project's name, from its first key on."""
    _, _, body = text.partition(f"\n{_SHIPPED}:\n")
    body = re.sub(rf"^(\s+(?:#\s+)?schema: ){_SHIPPED}$", rf"\g<1>{name}", body, flags=re.M)
    body = body.replace(f"spark.app.name: {_SHIPPED}", f"spark.app.name: {name}")
    head = (
        "# The targets of this project; `dbt build --target delta` chooses one.\n"
        "# AFTERIMAGE_WAREHOUSE moves the warehouse; a relative path begins in the "
        "project's folder.\n\n"
    )
    return f"{head}{name}:\n{body}"


def _loaded(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UnclearProjectError(
            f"{file} is not YAML: {error}. Nothing was written. Fix: correct the file."
        ) from error
    return content if isinstance(content, dict) else {}
