"""A program that builds one table's models, so that a test can kill it at any moment.

    python -m tests.functional.killed_run prepare PROFILES TARGET SCRATCH
    python -m tests.functional.killed_run build PROFILES TARGET SCRATCH RESULT

`prepare` builds the first batch of the demo and lands the second. `build` builds that, prints
`started` when Spark is up and dbt begins, and writes all rows of the tables to RESULT.
Reads AFTERIMAGE_WAREHOUSE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.functional.dbt_project import DbtProject

SCHEMA = "killed"
RAW_SCHEMA = "killed_raw"
TABLES = (
    "orders_changes",
    "orders_changes_rejected",
    "orders_history",
    "orders_current",
    "orders_field_changes",
)
MODELS = ("--select", "stg_qlik__orders", *(name for name in TABLES if "rejected" not in name))


def main(action: str, profiles: str, target: str, scratch: str, result: str = "") -> None:
    """Do what the command line says."""
    project = DbtProject(
        Path(__file__).parents[2],
        Path(profiles),
        target,
        SCHEMA,
        Path(scratch),
        {"demo_raw_schema": RAW_SCHEMA},
        "qlik",
    )
    if action == "prepare":
        project("run-operation", "land_demo", "--args", "{batch: 1}")
        project("run", *MODELS)
        project("run-operation", "land_demo", "--args", "{batch: 2}")
        return
    project("run-operation", "check_session")
    print("started", flush=True)
    project("run", *MODELS)
    Path(result).write_text(json.dumps(tables_as_text()), encoding="utf-8")


def tables_as_text() -> dict[str, list[str]]:
    """All rows of each table as sorted JSON; when a run recorded them is left out."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    rows = {
        name: session.table(f"{SCHEMA}.{name}")
        .drop("recorded_at", "change_date")
        .toJSON()
        .collect()
        for name in TABLES
    }
    return {name: sorted(texts) for name, texts in rows.items()}


if __name__ == "__main__":
    main(*sys.argv[1:])
