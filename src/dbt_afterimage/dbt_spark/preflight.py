"""Preflight checks: report errors in the manifest before Spark starts.

dbt connects for the schemas and the relation cache before it runs the first hook, and a classic
session takes seconds to start. `dbt parse` never connects: it is checked when dbt hands over the
manifest. dbt gives the adapter its manifest to find macros in
(`save_macros_to_adapter` in dbt/parser/manifest.py, after a full and after a partial parse;
`setup_manifest` in dbt/cli/requires.py for a manifest that a program passes).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from dbt.adapters.spark.connections import SparkConnectionMethod
from dbt_common.exceptions import DbtRuntimeError

from dbt_afterimage.dbt_spark.documentation import PACKAGE, models_of_package
from dbt_afterimage.dbt_spark.statements import check_method, command_flag
from dbt_afterimage.settings import SettingsError, parse_settings

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from dbt.contracts.graph.nodes import Macro

CHECKED_COMMANDS = (
    "build",
    "compile",
    "freshness",
    "parse",
    "retry",
    "run",
    "seed",
    "snapshot",
    "test",
)
"""Those that run the hook `on-run-start`, and `compile` and `parse`, by which projects are checked.

Not `run-operation` and `show`: they also repair and query the tables of a project that has an
error elsewhere.
"""

_CHECKED = "_afterimage_checked"
"""Attribute of an adapter: the manifest that was checked. dbt connects often in one command."""


def check_after_parsing(adapter: Any) -> None:
    """Check the manifest in `dbt parse`; the other commands check it when they connect.

    Raises:
        DbtRuntimeError: no command of the project can succeed.
    """
    if command_flag("WHICH") == "parse":
        check_before_connecting(adapter)


def check_before_connecting(adapter: Any) -> None:
    """Check the manifest of the command that runs, once.

    Raises:
        DbtRuntimeError: the command cannot succeed; Spark was not started for it.
    """
    manifest = adapter.get_macro_resolver()
    if manifest is None or command_flag("WHICH") not in CHECKED_COMMANDS:
        return
    if vars(adapter).get(_CHECKED) is manifest:
        return
    if adapter.config.credentials.method == SparkConnectionMethod.SESSION:
        problem = problem_of(manifest)
        if problem:
            raise DbtRuntimeError(problem)
    elif models_of_package(manifest) and _check_session(manifest):
        check_method(adapter.config.credentials)
    setattr(adapter, _CHECKED, manifest)


def problem_of(manifest: Manifest) -> str:
    """Why no command of a project can succeed, with the fix; "" if there is no reason."""
    return (
        _copied_macro(manifest)
        or _missing_hook(manifest)
        or _ignored_configs(manifest)
        or _wrong_settings(manifest)
        or _wrong_models(manifest)
    )


def _ignored_configs(manifest: Manifest) -> str:
    """Configuration of dbt's that our materializations would ignore, of all models."""
    problems = [
        f"{node.unique_id} is configured with `{name}`, which the materialization "
        f"{node.config.materialized} does not have. Nothing was run. Fix: remove it for this "
        f"model{instead}."
        for node in models_of_package(manifest)
        for name, instead in _ignored_by_us(node)
    ]
    return "\n".join(problems)


def _ignored_by_us(node: Any) -> Iterator[tuple[str, str]]:
    """Name of a configuration that the model has, and what there is instead."""
    config = node.config
    if config.contract.enforced:
        instead = "; the columns follow the source, and a type that does not fit stops the run"
        yield "contract: {enforced: true}", instead
    elif node.constraints or any(column.constraints for column in node.columns.values()):
        yield "constraints", " and use data tests"
    if config.grants:
        yield f"grants: {config.grants}", ", and grant in a `post_hook` or in the catalog"
    if config.database:
        yield f"database: {config.database}", "; the catalog is the default one of the target"
    # dbt's default, `ignore`, is set where nobody has chosen it
    chosen = config.on_schema_change if "on_schema_change" in node.unrendered_config else None
    if config.materialized != "staging_view" and chosen not in (None, "append_new_columns"):
        instead = " or set append_new_columns: new columns are always added"
        yield f"on_schema_change: {chosen}", instead


def _wrong_settings(manifest: Manifest) -> str:
    """Errors in the settings of all source tables that have some, selected or not."""
    problems = []
    for source in manifest.sources.values():
        if not (
            source.meta.get("afterimage")
            or source.config.meta.get("afterimage")
            or source.config.get("afterimage")
        ):
            continue
        try:
            parse_settings(source.to_dict(omit_none=False))
        except SettingsError as error:
            problems.append(f"{_place_of(source)}: {error}")
    return "\n".join(problems)


def _place_of(source: Any) -> str:
    """File and line of a source table; dbt's manifest has the file alone."""
    path = str(source.original_file_path)
    try:
        # dbt works in the project's folder
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), yaml.SafeLoader)
    except (OSError, yaml.YAMLError):
        return path
    entry = _named(root, "sources", source.source_name)
    table = _named(entry, "tables", source.name)
    return path if table is None else f"{path}:{table.start_mark.line + 1}"


def _named(node: yaml.Node | None, field: str, name: str) -> yaml.Node | None:
    """The mapping called `name` in a list of YAML mappings."""
    lists = [value for key, value in node.value if key.value == field] if node else []
    for entry in lists[0].value if lists else []:
        if any((key.value, value.value) == ("name", name) for key, value in entry.value):
            found: yaml.Node = entry
            return found
    return None


_WRONG_INPUTS = {
    "scd2_history": ("change log", "<table>_changes", ("staging_view", "scd2_history")),
    "current_state": ("history", "<table>_history", ("staging_view", "change_log")),
    "field_changes": ("change log", "<table>_changes", ("staging_view",)),
}
"""Materialization -> what its first input is, how that is named, and what it cannot be."""


def _wrong_models(manifest: Manifest) -> str:
    """Models that read a model of another layer, or lack the materialization of their macro."""
    problems = []
    models: dict[str, Any] = dict(manifest.nodes)
    for node in models.values():
        if node.resource_type != "model":
            continue
        kind = node.config.materialized
        where = f"Model {node.name} ({node.original_file_path})"
        if "build_changes(" in node.raw_code and kind not in ("change_log", "staging_log"):
            problems.append(
                f"{where} calls `build_changes` and is materialized as {kind}. Fix: add the line "
                'dbt.config(materialized="change_log") before it.'
            )
        first = models.get(next(iter(node.depends_on.nodes), ""))
        wanted, name, wrong = _WRONG_INPUTS.get(kind, ("", "", ()))
        if first is not None and first.config.materialized in wrong:
            problems.append(
                f"{where} reads {first.name}, which is a {first.config.materialized}. Its input is "
                f"a {wanted}. Fix: ref('{name}')."
            )
    return "\n".join(problems)


def _copied_macro(manifest: Manifest) -> str:
    """Macros of the package call each other by its name, which only the package has."""
    if any(macro.package_name == PACKAGE for macro in manifest.macros.values()):
        return ""
    callers = [each for each in manifest.macros.values() if f"{PACKAGE}._" in each.macro_sql]
    if not callers:
        return ""
    macro = min(callers, key=lambda each: (each.name.startswith("_"), each.name))
    return (
        f"The macro `{macro.name}` ({macro.original_file_path}) of {macro.package_name} calls "
        f"macros of the dbt package {PACKAGE}, which this project does not have. Copies of the "
        "package's macros do not work, because they call each other by the package's name. "
        "Nothing was run. Fix: remove the copies and install the package: `afterimage init` adds "
        "it to packages.yml, then run `dbt deps`."
    )


def _missing_hook(manifest: Manifest) -> str:
    """The package brings the hook; a project that has only its macros lacks it."""
    # a staging view writes no progress
    models = [
        node.name
        for node in models_of_package(manifest)
        if node.config.materialized != "staging_view"
    ]
    macro = _check_session(manifest)
    if not models or macro is None or _is_reached(manifest, macro.unique_id):
        return ""
    return (
        "No `on-run-start` hook of this project calls the macro `check_session`, which creates the "
        f"table `afterimage_progress` and checks the Spark session. Models such as `{models[0]}` "
        "need both. Nothing was run. Fix: install afterimage as a dbt package, which has the hook, "
        "or add to dbt_project.yml:\n"
        "on-run-start:\n"
        f'  - "{{{{ {macro.package_name}.check_session() }}}}"'
    )


def _check_session(manifest: Manifest) -> Macro | None:
    """Our macro of this name, in the package or copied; None where there is none."""
    for macro in manifest.macros.values():
        if macro.name == "check_session" and f"adapter.{PACKAGE}" in macro.macro_sql:
            return macro
    return None


def _is_reached(manifest: Manifest, wanted: str) -> bool:
    """Whether a hook calls a macro, itself or by other macros."""
    hooks = [node for node in manifest.nodes.values() if "on-run-start" in node.tags]
    found = {name for hook in hooks for name in hook.depends_on.macros}
    to_visit = list(found)
    while to_visit:
        macro = manifest.macros.get(to_visit.pop())
        called = set(macro.depends_on.macros) - found if macro else set()
        found |= called
        to_visit += called
    return wanted in found
