"""The check that everything is described finds each kind of gap, and nothing else."""

from __future__ import annotations

from typing import Any

from scripts.check_descriptions import undescribed


def manifest(description: str) -> dict[str, Any]:
    """A project with one thing of every kind, all with the same description."""
    column = {"name": "order_id", "description": description}
    where = {"package_name": "afterimage", "original_file_path": "a.yml"}
    described = {**where, "description": description, "columns": {"order_id": column}}
    argument = {"name": "mask", "description": description}
    return {
        "metadata": {"project_name": "afterimage"},
        "nodes": {
            "m": {**described, "name": "orders", "resource_type": "model"},
            "s": {**described, "name": "codes", "resource_type": "seed"},
            "t": {**described, "name": "not_null_x", "resource_type": "test", "columns": {}},
            "o": {**described, "name": "other", "resource_type": "model", "package_name": "dbt"},
        },
        "exposures": {
            "e": {**where, "description": description, "name": "page", "resource_type": "exposure"}
        },
        "sources": {
            "r": {
                **described,
                "name": "orders__ct",
                "source_name": "demo",
                "source_description": description,
            }
        },
        "macros": {
            "a": {**described, "name": "decode", "arguments": [argument]},
            "b": {**where, "name": "_private", "description": "", "arguments": []},
            "c": {**where, "name": "spark__override", "description": "", "arguments": []},
            "d": {**where, "name": "materialization_generated", "description": "", "arguments": []},
        },
    }


def test_a_described_project_passes() -> None:
    project_file = "vars:\n  # what it is for\n  days: 1\n  hours: 2  # on its line\n"
    assert list(undescribed(manifest("One row per order."), project_file)) == []


def test_every_gap_is_named() -> None:
    project_file = "name: x\nvars:\n  days: 1\nmodels:\n  afterimage: 1\n"
    assert sorted(undescribed(manifest(" "), project_file)) == [
        "exposure page (a.yml): no description",
        "macro decode (a.yml): no description",
        "macro decode: argument mask has no description",
        "model orders (a.yml): no description",
        "model orders: column order_id has no description",
        "seed codes (a.yml): no description",
        "seed codes: column order_id has no description",
        "source demo (a.yml): no description",
        "source table demo.orders__ct (a.yml): no description",
        "source table demo.orders__ct: column order_id has no description",
        "var days (dbt_project.yml): no comment above it",
    ]


def test_a_model_without_any_column_is_named() -> None:
    project = manifest("One row per order.")
    project["nodes"]["m"]["columns"] = {}
    assert list(undescribed(project, "")) == ["model orders (a.yml): lists no columns"]
    project["nodes"]["m"]["config"] = {"materialized": "change_activity"}
    assert list(undescribed(project, "")) == []
