"""docs/soliddb.md: its examples work, and its tables list what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt_afterimage.settings import parse_settings
from dbt_afterimage.settings.base import TableSettings
from dbt_afterimage.settings.soliddb import SolidDbSettings
from dbt_afterimage.sources.soliddb.records import Decoded, Layout
from dbt_afterimage.sources.soliddb.value_columns import BINARY, Column

PAGE = (Path(__file__).parents[3] / "docs" / "soliddb.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_sources_of_the_example_are_valid() -> None:
    (text,) = blocks("yaml")
    (source,) = yaml.safe_load(text)["sources"]
    of_source = source["config"]["meta"]
    for table in source["tables"]:
        meta = table.get("config", {}).get("meta", {})
        entry = {"source_name": "branch", "meta": meta, "source_meta": of_source, "columns": {}}
        assert parse_settings({**entry, "name": table["name"]})["framing"] == "engine"


def test_the_models_of_the_example_compile() -> None:
    model, framing = blocks("python")
    for text in (model, framing):
        compile(text, "example", "exec")
    assert 'materialized="staging_log"' in model


def test_the_framing_of_the_example_works() -> None:
    names: dict[str, Any] = {}
    exec(blocks("python")[1], names)
    layout = Layout([Column("A", BINARY), Column("B", BINARY)], names["cut"], "utf-8")
    assert layout.decode(bytes(16)) == Decoded(["00" * 8, "00" * 8])
    assert layout.decode(b"1").reject_detail == "1 bytes for 2 columns"


@pytest.mark.parametrize(
    "name", sorted(set(SolidDbSettings.model_fields) - set(TableSettings.model_fields))
)
def test_every_setting_is_listed_with_its_default(name: str) -> None:
    default = SolidDbSettings.model_fields[name].default
    shown = "none" if default is None else f"`{default}`"
    assert f"\n| `{name}` | {shown} |" in PAGE
