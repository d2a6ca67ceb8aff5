"""What the project has already, and what a call has added to it before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbt_afterimage.cli.commands.add_table.project import AlreadyDeclaredError, Project
from dbt_afterimage.cli.commands.add_table.proposal import KeyProposal, Proposal, SourceTable
from dbt_afterimage.cli.commands.add_table.render import Layout, files

ORDERS = Proposal(
    system="qlik_change_table",
    schema="erp",
    source="erp",
    table="orders",
    entry=SourceTable("orders__ct", "Change records of orders."),
    key=KeyProposal(("id",), "declared", is_sure=True),
    key_columns=("id",),
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n", encoding="utf-8")
    return Project(tmp_path)


def check(project: Project, proposal: Proposal) -> None:
    project.check(proposal, files(proposal, project.layout))


def test_a_clone_of_this_project_gets_models_of_its_own() -> None:
    """Its paths are partly code, for the demos."""
    clone = Project(Path(__file__).parents[3])
    assert clone.layout == Layout(models="models", python="python_models", namespace="")


def test_two_tables_of_a_call_cannot_have_models_of_one_name(project: Project) -> None:
    check(project, ORDERS)
    check(project, replace(ORDERS, table="crm_orders", schema="crm", source="crm"))
    with pytest.raises(AlreadyDeclaredError, match=r"crm\.orders__ct.*those of erp\.orders__ct"):
        check(project, replace(ORDERS, schema="crm", source="crm"))


def test_a_table_that_reads_all_schemas_cannot_go_beside_one_of_a_schema(tmp_path: Path) -> None:
    """It was added when only one schema had a table of this name."""
    (tmp_path / "dbt_project.yml").write_text("name: shop\n", encoding="utf-8")
    meta = "{afterimage: {message_table: orders}}"
    entry = f"{{name: orders, config: {{meta: {meta}}}}}"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(
        f"sources: [{{name: store, tables: [{entry}]}}]\n", encoding="utf-8"
    )
    settings = {"message_table": "orders", "table_schema": "sales"}
    table = SourceTable("sales_orders", "Not landed.", settings)
    proposal = replace(ORDERS, table="sales_orders", source="store", entry=table)
    with pytest.raises(
        AlreadyDeclaredError, match=r"table orders of the source store.*Fix: set `t"
    ):
        check(Project(tmp_path), proposal)


def test_a_model_of_the_same_name_in_another_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n", encoding="utf-8")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "orders_current.sql").touch()
    with pytest.raises(AlreadyDeclaredError, match=r"a model orders_current already, in models/o"):
        check(Project(tmp_path), ORDERS)
