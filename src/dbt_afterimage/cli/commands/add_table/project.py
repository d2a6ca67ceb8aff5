"""The dbt project that `add-table` writes into: its folders, and what it declares already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dbt_afterimage.cli.commands.add_table.proposal import Proposal
from dbt_afterimage.cli.commands.add_table.render import Layout
from dbt_afterimage.errors import AfterimageError

CLONE = "afterimage"


class AlreadyDeclaredError(AfterimageError):
    """A table or a model of this name is in the project already, in another file."""


class Project:
    """A dbt project on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = yaml.safe_load((folder / "dbt_project.yml").read_text(encoding="utf-8")) or {}
        paths = [str(path) for path in settings.get("model-paths") or ["models"]]
        self.layout = Layout(
            models=paths[0],
            python="python_models" if "python_models" in paths else paths[0],
            namespace="" if settings.get("name") == CLONE else "afterimage.",
        )
        self._files = [
            file
            for path in paths
            for file in sorted((folder / path).rglob("*"))
            if file.suffix in (".sql", ".py", ".yml", ".yaml")
        ]
        self._declared: dict[tuple[str, str], str] = {}
        self._of_all_schemas: dict[tuple[str, Any], str] = {}
        self._read_sources()
        self._added: dict[str, str] = {}

    def check(self, proposal: Proposal, files: dict[str, str]) -> None:
        """Stop if another file, or another proposal before, has one of its tables or models.

        Raises:
            AlreadyDeclaredError: dbt would refuse the project.
        """
        name = proposal.raw_name
        if proposal.table in self._added:
            raise AlreadyDeclaredError(
                f"{name}: its models would have the same names as those of "
                f"{self._added[proposal.table]}, such as {proposal.table}_changes. Nothing was "
                "written for this table. Fix: add it in a call of its own with --prefix, which "
                "begins the names of its models."
            )
        self._added[proposal.table] = name
        models = {Path(path).stem: path for path in files if not path.endswith(".yml")}
        for file in self._files:
            relative = file.relative_to(self.folder).as_posix()
            if file.suffix in (".sql", ".py") and models.get(file.stem, relative) != relative:
                raise AlreadyDeclaredError(
                    f"{name}: the project has a model {file.stem} already, in {relative}. Nothing "
                    "was written for this table. Fix: give --prefix, which begins the names of "
                    "its models, or remove that file."
                )
        for table in proposal.tables:
            other = self._of_all_schemas.get((proposal.source, table.settings.get("message_table")))
            if "table_schema" in table.settings and other:
                raise AlreadyDeclaredError(
                    f"{name}: the table {other} of the source {proposal.source} reads the messages "
                    f"of {table.settings['message_table']} in all schemas. Nothing was written for "
                    f"this table. Fix: set `table_schema` in the `meta.afterimage` of {other}, or "
                    "remove its files."
                )
        for table in (*proposal.tables, *proposal.shared_tables):
            declared = self._declared.get((proposal.source, table.name))
            if declared and declared not in files:
                raise AlreadyDeclaredError(
                    f"{proposal.schema}.{table.name}: {declared} declares the source table "
                    f"{proposal.source}.{table.name} already. Nothing was written for this table. "
                    "Fix: remove it there, or give --source another name."
                )

    def _read_sources(self) -> None:
        """Which file declares each source table, and which tables read messages of any schema."""
        for file in self._files:
            if file.suffix not in (".yml", ".yaml"):
                continue
            try:
                content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
            except yaml.YAMLError:
                continue  # dbt reports it
            for source in (content or {}).get("sources") or []:
                for table in source.get("tables") or []:
                    of_source, name = str(source.get("name")), str(table.get("name"))
                    self._declared[of_source, name] = file.relative_to(self.folder).as_posix()
                    meta = (table.get("config") or {}).get("meta") or table.get("meta") or {}
                    settings = meta.get("afterimage") or {}
                    if "message_table" in settings and "table_schema" not in settings:
                        self._of_all_schemas[of_source, settings["message_table"]] = name
