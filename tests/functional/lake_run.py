"""A program that builds a batch of people wherever its target has the tables, then runs commands.

    python -m tests.functional.lake_run FOLDER FORMAT BATCH PROCESSES COMMANDS RESULT

The profile is in the folder, and `FORMAT` names its target and the format of the tables.
`PROCESSES` is `one`, or `each`: a process for each model, seed and test. `COMMANDS` is JSON: a list
of `afterimage` commands, each with its arguments. What the batch and the commands left is written
to `RESULT`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.spark.session import current
from tests.functional.dbt_project import DbtProject
from tests.functional.one_by_one import commands_one_by_one
from tests.functional.people import MODELS, PEOPLE, People, seq, start
from tests.functional.project_files import (
    add_variables,
    changes_model,
    write_files,
    write_settings,
)

SCHEMA, READERS = "stored", "readers"
BATCHES: list[list[tuple[Any, ...]]] = [
    [
        (seq(1), "I", 1, "Ann", "first", 0.5, "1.25"),
        (seq(2), "I", 2, "Bob", "second", 1.5, "2.50"),
        (seq(3), "I", 3, "Cid", None, 2.5, "3.75"),
    ],
    [
        (seq(4), "B", 1, "Ann", "first", 0.5, "1.25"),
        (seq(4), "U", 1, "Anna", "first", 0.5, "1.25"),
        (seq(5), "D", 2, "Bob", "second", 1.5, "2.50"),
        (seq(6), "I", 4, "Dan", None, None, None),
    ],
]
TESTED = {
    "stg_people": [{"not_null": {"arguments": {"column_name": "change_seq"}}}],
    "people_history": ["consistent_versions"],
    "people_current": [
        {"current_equals_open": {"arguments": {"history": "ref('people_history')"}}}
    ],
}
MODELS_OF_LAKE = {
    **MODELS,
    # a staging model of another one, which the change log reads
    "staging/stg_people_here.sql": "select * from {{ ref('stg_people') }}\n",
    **changes_model("people", "stg_people_here"),
    "tests.yml": {
        "version": 2,
        "models": [{"name": name, "data_tests": tests} for name, tests in TESTED.items()],
    },
}
VERSIONS = "select id, name, opened_by, closed_by, is_current from {} order by id, valid_from_seq"
FAILS = "select * from {{ ref('people_history') }} where {{ var('fails', false) }}\n"


def history(people: People) -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in people.spark.sql(VERSIONS.format(people.name("history"))).collect()
    ]


def published(people: People) -> dict[str, Any]:
    """The history as readers see it: at the tag, and in the view, None where there is no view."""
    if people.table_format != "iceberg":
        return {}
    table = people.name("history")
    people.spark.sql(f"refresh table {table}")
    found = people.spark.sql(VERSIONS.format(f"{table} version as of 'published'")).collect()
    try:
        view = people.spark.sql(VERSIONS.format(f"{SCHEMA}_{READERS}.people_history")).collect()
    except AnalysisException:
        view = None
    return {"tag": found, "view": view}


def run(project: DbtProject, arguments: list[str]) -> dict[str, Any]:
    """A command in this process, so that it has the Spark session of the build."""
    with project.environment():
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return {"exit_code": done.exit_code, "stdout": done.stdout, "output": done.output}


def documented(catalog: Any) -> dict[str, Any]:
    """What the page of dbt docs shows."""
    (history,) = [page for name, page in catalog.nodes.items() if name.endswith("people_history")]
    return {"pages": len(catalog.nodes), "valid_from": history.columns["valid_from"].type}


def build_one_by_one(project: DbtProject) -> None:
    """Each command in a process of its own."""
    project("parse")
    program = Path(sys.executable).with_name("dbt")
    for command in commands_one_by_one(project.scratch / "target" / "manifest.json"):
        with project.environment():
            done = subprocess.run(
                [str(program), *command], capture_output=True, text=True, check=False
            )
        assert done.returncode == 0, done.stdout + done.stderr


def publish_together(project: DbtProject) -> None:
    """Tables are published together, and a test fails if it is told to."""
    add_variables(project.path, {"published_schema": READERS})
    write_files(project.path, {"tests/fails.sql": FAILS})


def main(
    folder: str, table_format: str, batch: str, processes: str, commands: str, result: str
) -> None:
    """Do what the command line says."""
    path = Path(folder)
    project = DbtProject(path / "project", path, table_format, SCHEMA, path / "scratch")
    write_settings(project.path)
    project("show", "--inline", "select 1")
    session = current()
    people = start(project, session, table_format, MODELS_OF_LAKE)
    if table_format == "iceberg":
        publish_together(project)
    if batch == "1":
        people.land(PEOPLE, BATCHES[0])
    else:
        people.append(PEOPLE, BATCHES[1])
    held_back = {}
    if processes == "each":
        build_one_by_one(project)
    else:
        if batch != "1":
            project.error_of("build", fails=True)
            held_back = published(people)
        project("build")
    built, seen = history(people), published(people)
    catalog = project("docs", "generate")
    progress = session.table(f"{SCHEMA}.afterimage_progress").filter("model = 'people_history'")
    found = {
        "built": built,
        "held_back": held_back,
        "published": seen,
        "documented": documented(catalog),
        "paths": [row["path"] for row in progress.orderBy("recorded_at").collect()],
        "commands": [run(project, arguments) for arguments in json.loads(commands)],
        "history": history(people),
        "published_later": published(people),
    }
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
