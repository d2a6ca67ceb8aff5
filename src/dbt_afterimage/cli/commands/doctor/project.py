"""Checks of the dbt project: it can be parsed, and its source tables have valid settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dbt_afterimage.cli.commands.doctor.check import Check
from dbt_afterimage.cli.support.runs import read_manifest, target_folder
from dbt_afterimage.settings import SettingsError, SourceSettings, parse_settings


@dataclass(frozen=True)
class DeclaredTable:
    """A source table with `meta.afterimage`.

    Attributes:
        name: source and table.
        schema: the raw schema, maybe with its catalog.
        identifier: the table's name there.
        settings: validated; None where they are not valid.
        problem: what is wrong with the settings; "" for nothing.
    """

    name: str
    schema: str
    identifier: str
    settings: SourceSettings | None
    problem: str = ""


def declared_tables(target: str | None) -> tuple[list[DeclaredTable], str]:
    """The project's source tables; and why dbt could not parse the project, "" where it could."""
    from dbt.cli.main import dbtRunner

    chosen = ["--target", target] if target else []
    # not `parse`, which stops at a wrong setting; each of them is a check of its own
    arguments = ["--log-level", "none", "--quiet", "list", "--resource-type", "source", *chosen]
    result = dbtRunner().invoke(arguments)
    if not result.success:
        return [], " ".join(str(result.exception or "`dbt parse` failed").split())
    return tables_of(target_folder()), ""


def tables_of(folder: Path) -> list[DeclaredTable]:
    """The source tables in dbt's target folder that are declared to this product."""
    sources = read_manifest(folder)["sources"].values()
    found = []
    for source in sorted(sources, key=lambda each: str(each["unique_id"])):
        meta = source.get("meta") or source.get("config", {}).get("meta") or {}
        if not meta.get("afterimage"):
            continue
        name = f"{source['source_name']}.{source['name']}"
        place = (source["schema"], source["identifier"])
        try:
            found.append(DeclaredTable(name, *place, parse_settings(source)))
        except SettingsError as error:
            found.append(DeclaredTable(name, *place, None, " ".join(str(error).split())))
    return found


def project_checks(tables: list[DeclaredTable], problem: str) -> Iterator[Check]:
    """Whether the project can be parsed, and its settings."""
    if problem:
        yield Check("project", "failed", problem, "correct the project until `dbt parse` passes")
        return
    if not tables:
        yield Check(
            "project",
            "warning",
            "no source table has `meta.afterimage`",
            "declare one with `afterimage add-table SCHEMA.TABLE`",
        )
        return
    yield Check("project", "ok", f"{len(tables)} source tables are declared")
    for table in tables:
        if table.problem:
            text, _, fix = table.problem.partition(" Fix: ")
            yield Check(f"settings of {table.name}", "failed", text, fix)
