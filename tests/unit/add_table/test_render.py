"""The files of a table: in the form that the docs show, and as the linters want them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from dbt_afterimage.cli.commands.add_table import with_settings
from dbt_afterimage.cli.commands.add_table.proposal import (
    KeyProposal,
    Proposal,
    SharedModel,
    SourceColumn,
    SourceTable,
)
from dbt_afterimage.cli.commands.add_table.render import Layout, UnsafeNameError, files
from dbt_afterimage.cli.support.file_changes import changes, write

ROOT = Path(__file__).parents[3]
CLONE = Layout(models="models", python="python_models", namespace="")

PROPOSAL = Proposal(
    system="qlik_change_table",
    schema="sales",
    source="sales",
    table="invoices",
    entry=SourceTable(
        "invoices__ct",
        "One row per change record of invoices.",
        {
            "key": ["invoice_id"],
            "base": {"kind": "frozen"},
            "lob_columns": [f"a_rather_long_name_of_a_column_{number}" for number in range(9)],
        },
        (
            SourceColumn("invoice_id", "Key."),
            SourceColumn("order-no", "With a hyphen: and a colon; " + "many words " * 20),
            SourceColumn("on", "A word of YAML", "decimal(9,2)"),
        ),
    ),
    base=SourceTable("invoices", "The full load."),
    key=KeyProposal(("invoice_id",), "declared", is_sure=True),
    key_columns=("invoice_id",),
    has_mask=True,
)
SHARED = replace(
    PROPOSAL,
    shared_tables=(SourceTable("messages", "One row per message."),),
    shared_model=SharedModel(
        "stg_sales__messages",
        "dbt_afterimage.messages",
        "build_messages",
        ('dbt.source("sales", "messages")',),
        "One row per message.",
    ),
)


def on_one_line(call: str) -> str:
    """A macro call, which is wrapped where the project's SQL linter wants it."""
    return call.replace("(\n    ", "(").replace(",\n    ", ", ").replace("\n)", ")").strip()


def test_models_have_the_form_that_the_docs_show() -> None:
    shown = (ROOT / "docs/add_table.md").read_text(encoding="utf-8")
    found = files(PROPOSAL, Layout())
    sql = [text for path, text in found.items() if path.endswith(".sql")]
    assert len(sql) == 4
    for text in sql:
        assert on_one_line(text) in shown
    python = found["models/changes/sales/invoices_changes.py"]
    assert python.split("\n\n", 1)[1].strip() in shown.replace("\n   ", "\n")


def test_a_user_s_project_calls_macros_and_tests_of_the_package() -> None:
    found = files(PROPOSAL, Layout())
    assert found["models/marts/sales/invoices_history.sql"] == (
        "{{ afterimage.history(ref('invoices_changes')) }}\n"
    )
    models = yaml.safe_load(found["models/marts/sales/_invoices__models.yml"])["models"]
    tests = {model["name"]: model.get("data_tests") for model in models}
    assert "afterimage.consistent_versions" in tests["invoices_history"]


def test_settings_and_columns_are_read_back_as_they_were() -> None:
    text = files(PROPOSAL, CLONE)["models/staging/sales/_invoices__sources.yml"]
    (source,) = yaml.safe_load(text)["sources"]
    assert source["config"]["meta"]["afterimage"] == {"system": "qlik_change_table"}
    table = source["tables"][0]
    assert table["config"]["meta"]["afterimage"] == PROPOSAL.entry.settings
    assert [column["name"] for column in table["columns"]] == ["invoice_id", "order-no", "on"]
    assert [column.get("quote") for column in table["columns"]] == [None, True, None]
    assert table["columns"][2]["data_type"] == "decimal(9,2)"


def test_dbt_stops_at_a_question_until_the_user_says_how_the_base_table_is_kept() -> None:
    bare = replace(PROPOSAL, entry=replace(PROPOSAL.entry, settings={"lob_columns": ["scan"]}))
    asked = with_settings(bare, None, None)
    assert list(asked.entry.settings) == ["key", "lob_columns", "base"]
    assert asked.entry.settings["base"]["kind"].startswith("frozen or live?")
    assert [note.partition(":")[0] for note in asked.notes] == [
        "the time of the full load is not in the data",
        "base.kind",
    ]
    answered = with_settings(bare, "2026-03-02", "live")
    assert answered.entry.settings["base"] == {"kind": "live", "loaded_at": "2026-03-02"}
    assert not answered.notes
    without = with_settings(replace(bare, base=None), "2026-03-02", "live")
    assert "base" not in without.entry.settings
    assert "--loaded-at has no effect" in without.notes[0]


def test_without_before_images_field_changes_come_from_history() -> None:
    found = files(replace(PROPOSAL, has_before_images=False), CLONE)
    model = found["models/marts/sales/invoices_field_changes.sql"]
    assert "history=ref('invoices_history')" in model
    assert "before_images_arrive" not in found["models/marts/sales/_invoices__models.yml"]


def test_without_a_key_there_is_no_history() -> None:
    found = files(replace(PROPOSAL, key=KeyProposal((), "", is_sure=True)), CLONE)
    assert not any("history" in path or "current" in path for path in found)
    assert "models/marts/sales/invoices_field_changes.sql" in found


@pytest.mark.parametrize("proposal", [PROPOSAL, SHARED], ids=["own", "shared"])
def test_files_pass_yamllint_ruff_and_the_line_width_of_sqlfluff(
    proposal: Proposal, tmp_path: Path
) -> None:
    found = files(proposal, CLONE)
    write(tmp_path, changes(tmp_path, found))
    bin_folder = Path(sys.executable).parent
    # as in this project, the YAML describes a model's function
    ignored = ["--ignore", "D103"]
    for command in (
        [bin_folder / "yamllint", "--strict", "--config-file", ROOT / ".yamllint", tmp_path],
        [bin_folder / "ruff", "check", "--config", ROOT / "pyproject.toml", *ignored, tmp_path],
        [bin_folder / "ruff", "format", "--check", "--config", ROOT / "pyproject.toml", tmp_path],
    ):
        result = subprocess.run(
            list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
    lines = [
        line for path, text in found.items() if path.endswith(".sql") for line in text.splitlines()
    ]
    assert max(map(len, lines)) <= 80
    # written once, the files are as they should be
    assert changes(tmp_path, found) == []


@pytest.mark.parametrize("name", ["in'voices", "x') }}{{ env_var('HOME", "a\\", "a\nb"])
def test_a_table_whose_name_would_be_code_is_refused(name: str) -> None:
    hostile = replace(PROPOSAL, base=SourceTable(name, "The full load."))
    with pytest.raises(UnsafeNameError, match=r"(?s)^sales\.invoices__ct: .*Fix: create a view"):
        files(hostile, CLONE)


@pytest.mark.parametrize("value", ["{{ env_var('HOME') }}", "{% set x = 1 %}", "{# hidden #}"])
def test_what_dbt_would_render_in_yaml_is_refused(value: str) -> None:
    table = SourceTable("invoices__ct", "Rows.", {"filter": f"topic = '{value}'"})
    column = replace(table, settings={}, columns=(SourceColumn(value, "A column."),))
    for hostile in (table, column):
        with pytest.raises(UnsafeNameError, match="Nothing was written"):
            files(replace(PROPOSAL, entry=hostile), CLONE)


def test_a_table_of_a_shared_model_whose_name_would_be_code_is_refused() -> None:
    assert SHARED.shared_model is not None
    hostile = replace(SHARED.shared_model, arguments=('dbt.source("sales", "a\\"b")',))
    with pytest.raises(UnsafeNameError):
        files(replace(SHARED, shared_model=hostile), CLONE)
