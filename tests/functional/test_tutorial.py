"""The tutorial as a reader follows it, and the pages that show its tables.

All commands of docs/tutorial.md run in an empty folder, one after the other.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from dbt.cli.main import dbtRunner
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.dbt_spark.documentation import PACKAGE
from dbt_afterimage.history.feed import FEED_COLUMNS
from tests.functional.invoices import drop_invoices
from tests.functional.pages import commands_of, tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
SCHEMA = "shop"


def run(command: str) -> str:
    """Run a line of the page as a shell would, in this process; return what it prints."""
    program, *arguments = shlex.split(command)
    if program == "cd":
        os.chdir(arguments[0])
        return ""
    if program == "dbt":
        result = dbtRunner().invoke(arguments)
        assert result.success, f"{command}: {result.exception or result.result}"
        return ""
    assert program == "afterimage"
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, f"{command}: {done.output}"
    return done.output


@pytest.fixture(scope="module")
def printed(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[list[tuple[str, str, str]]]:
    """Each command of the tutorial, what the page says that it prints, and what it printed."""
    folder = tmp_path_factory.mktemp("tutorial")
    shutil.copytree(ROOT / "examples/tutorial", folder / "exports")
    drop_invoices(spark)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        commands = commands_of("docs/tutorial.md")
        yield [(command, shown, run(command)) for command, shown in commands]


def test_the_commands_print_what_the_page_shows(printed: list[tuple[str, str, str]]) -> None:
    programs = {" ".join(command.split()[:2]) for command, _, _ in printed}
    assert {"afterimage init", "afterimage land", "afterimage add-table", "dbt build"} <= programs
    shown = [(command, text.strip()) for command, text, _ in printed if text]
    assert len(shown) >= 6
    assert shown == [(command, text.strip()) for command, shown, text in printed if shown]


def rows(spark: SparkSession, query: str) -> list[list[str]]:
    """Rows as a page writes them."""
    found = spark.sql(query).collect()
    return [["" if value is None else str(value) for value in row] for row in found]


def one_row(spark: SparkSession) -> list[list[list[str]]]:
    """Raw records, versions, current row and field changes of invoice 1003."""
    return [
        rows(spark, query)
        for query in (
            "select null as header__change_seq, null as header__change_oper, "
            "null as header__change_mask, status, amount from sales.invoices "
            "where invoice_id = 1003 union all select header__change_seq, header__change_oper, "
            "header__change_mask, status, amount from sales.invoices__ct where invoice_id = 1003 "
            "order by 1, 2",
            f"select status, amount, valid_from, valid_to, opened_by, closed_by "
            f"from {SCHEMA}.invoices_history where invoice_id = 1003 order by valid_from_seq",
            "select invoice_id, customer_no, status, amount, due_on, valid_from "
            f"from {SCHEMA}.invoices_current where invoice_id = 1003",
            "select changed_at, column_name, old_value, new_value "
            f"from {SCHEMA}.invoices_field_changes where invoice_id = 1003 order by change_seq",
        )
    ]


@pytest.mark.usefixtures("printed")
def test_the_life_of_one_row(spark: SparkSession) -> None:
    """Both the page and the picture in the README, whose groups are the page's tables."""
    found = one_row(spark)
    assert [len(table) for table in found] == [5, 3, 1, 2]
    assert tables_of("docs/one_row.md")[:4] == found
    picture = ElementTree.parse(ROOT / "docs/one_row.svg")
    svg = "{http://www.w3.org/2000/svg}"
    groups = picture.findall(f".//{svg}g[@class='rows']")
    drawn = [
        [[cell.text or "" for cell in row.iter(f"{svg}text")] for row in group.findall(f"{svg}g")]
        for group in groups
    ]
    assert drawn == [[[cell for cell in row if cell] for row in table] for table in found]
    assert "docs/one_row.svg" in (ROOT / "README.md").read_text(encoding="utf-8")


KINDS = {
    "staging": ("stg_qlik__invoices", "stg_<system>__<table>"),
    "changes": ("invoices_changes", "<table>_changes"),
    "history": ("invoices_history", "<table>_history"),
    "current": ("invoices_current", "<table>_current"),
    "field_changes": ("invoices_field_changes", "<table>_field_changes"),
    "change_activity": ("change_activity", "change_activity"),
}
"""Start of the names of blocks in docs/dbt/columns -> a table, and what the page calls it."""
DECODED = {
    "qlik_messages_log": "stg_qlik_messages__<name>_log",
    "soliddb_log": "stg_soliddb__log",
}
"""Start of the names of blocks -> the page's heading, for decoded logs."""
OF_THE_CLOCK = re.compile(r"recorded_at|_lag_seconds")


def dictionary(spark: SparkSession, manifest: Any) -> str:
    """The page docs/tables.md, from the tutorial's tables and the descriptions of dbt docs."""
    page = (ROOT / "docs/tables.md").read_text(encoding="utf-8").split("\n## ")[0]
    for kind, (table, title) in KINDS.items():
        columns = blocks_of(manifest, kind)
        if "id" in columns:
            columns[f"{table}_id"] = columns.pop("id")
        description = manifest.nodes[f"model.shop.{table}"].description
        page += section(title, description, spark.table(f"{SCHEMA}.{table}"), columns)
    rejected = spark.table(f"{SCHEMA}.invoices_changes_rejected")
    of_log = blocks_of(manifest, "changes")
    comments = {
        field.name: field.metadata.get("comment") or of_log[field.name] for field in rejected.schema
    }
    why = "One row per record that broke a rule: [rejected records](rejected_records.md)."
    page += section("<table>_changes_rejected", why, rejected, comments)
    page += "\n## `<table>_history_feed`\n\nOne row per version that a run has made, closed, "
    page += "corrected or removed: [the feed](feed.md). It has the columns of the history too.\n"
    page += meanings(FEED_COLUMNS)
    for kind, title in DECODED.items():
        page += f"\n## `{title}`\n{meanings(blocks_of(manifest, kind))}"
    return page


def blocks_of(manifest: Any, kind: str) -> dict[str, str]:
    """The first paragraph of each column's description: a cell has no room for more."""
    start = f"doc.{PACKAGE}.{kind}__"
    return {
        name.removeprefix(start): " ".join(block.block_contents.partition("\n\n")[0].split())
        for name, block in manifest.docs.items()
        if name.startswith(start)
    }


def section(title: str, description: str, found: DataFrame, columns: dict[str, str]) -> str:
    """A table's columns, with an example from its rows, then those that it lacks."""
    text = f"\n## `{title}`\n\n{description}\n"
    text += "\n| column | type | meaning | example |\n|---|---|---|---|\n"
    values, others = sorted(found.collect(), key=str), dict(columns)
    for name, type_name in found.dtypes:
        if name in columns:
            filled = (row[name] for row in values if row[name] is not None)
            value = None if OF_THE_CLOCK.search(name) else next(filled, None)
            example = "" if value is None else f"`{value}`"
            text += f"| `{name}` | `{type_name}` | {others.pop(name)} | {example} |\n"
    if others:
        text += f"\nWith some settings or source systems only:\n{meanings(others)}"
    return text


def meanings(columns: Mapping[str, str]) -> str:
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in columns.items())
    return f"\n| column | meaning |\n|---|---|\n{rows}"


@pytest.mark.usefixtures("printed")
def test_the_dictionary_is_current(spark: SparkSession, tmp_path: Path) -> None:
    page = dictionary(spark, dbtRunner().invoke(["parse"]).result)
    current = tmp_path / "tables.md"
    current.write_text(page, encoding="utf-8")
    assert page == (ROOT / "docs/tables.md").read_text(encoding="utf-8"), f"Fix: cp {current} docs"
