"""The page of `afterimage report`: valid, self-contained and escaped, whatever the facts are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markupsafe import Markup
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands import report
from dbt_afterimage.cli.commands.report.charts import BLUE, ORANGE, bars, lines
from dbt_afterimage.cli.commands.report.findings import findings
from dbt_afterimage.cli.commands.report.page import render
from dbt_afterimage.cli.support.units import COUNT, SECONDS
from dbt_afterimage.cli.support.warehouse import TableVersion
from tests.html_page import Page
from tests.unit.report.facts import HOSTILE, PROGRESS, Memory, activity, at, facts, target_folder


def rendered(folder: Path, warehouse: Memory | None = None, project: str = "shop") -> str:
    found = facts(folder, warehouse)
    return render(found, findings(found, []), project, "prod")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return target_folder(tmp_path)


def test_a_page_is_self_contained(folder: Path) -> None:
    html = rendered(folder)
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    # all links lead to sections of the page itself
    assert {link[1:] for link in page.links} <= page.ids
    assert all(link.startswith("#") for link in page.links)
    assert set(re.findall(r"url\((.)", html)) <= {"#"}
    assert "@import" not in html
    # an SVG in HTML needs no name space, whose name is an address
    assert not re.search(r"https?:", html)


def test_a_page_shows_all_figures(folder: Path) -> None:
    page = Page(rendered(folder))
    for text in (
        "shop: pipeline health",
        "Target prod, schema lake, as of 2026-03-02 12:30. All times are UTC.",
        "3 tables",
        "20 min since the newest batch",
        "invoices: its raw table raw.invoices__ct does not exist.",
        "raw.orders__ct 160 rows, written 2026-03-02 12:09",
        "80 rows behind by 10 min",
        "The plots cover 2026-03-02 09:00 to 2026-03-02 12:00, up to 30 days",
        "changes per hour",
        "null_key 1 1 orders 2",
        "orders_history model 2 90 s 70 s 90 s",
        "not yet in orders_current",
    ):
        assert text in page.text
    assert page.tags.count("svg") > 6


def test_values_are_escaped(folder: Path) -> None:
    html = rendered(folder, project=HOSTILE)
    assert "<script>" not in html
    # project (title and heading), message of the failed step, reason of a rejected record
    assert Page(html).text.count("alert('x')") == 4
    assert html.replace("\n", "").isprintable()
    assert html.count(r"\u0000\u001b[2J\u202e") == 4


def test_rejected_records_themselves_are_not_shown(folder: Path) -> None:
    assert "secret" not in rendered(folder)


def test_a_warehouse_of_which_little_is_known(tmp_path: Path) -> None:
    commits: dict[str, list[TableVersion]] = {"orders_changes": [], "orders_history": []}
    warehouse = Memory({"afterimage_progress": PROGRESS}, commits)
    page = Page(rendered(tmp_path, warehouse))
    for text in (
        "Raw tables are not known: dbt's target folder has no manifest.json",
        "Schema lake has no table change_activity",
        "No record was rejected.",
        "Iceberg records it, Delta does not",
        "No run is known",
        "No step of a run is known.",
    ):
        assert text in page.text


def test_a_schema_in_which_no_change_log_was_built(tmp_path: Path) -> None:
    warehouse = Memory(
        {"afterimage_progress": PROGRESS.slice(0, 0), "change_activity": activity([])}, {}
    )
    page = Page(rendered(tmp_path, warehouse))
    assert "Nothing: no failed step" in page.text
    assert page.text.count("No change log has recorded a batch yet.") == 2
    assert "The table change_activity has no changes yet." in page.text


def test_a_table_without_any_change_in_the_period_is_named(folder: Path) -> None:
    warehouse = Memory()
    warehouse.tables["change_activity"] = activity([("orders", 1, 2, 0, 10, 5)])
    assert "Without changes in this period: clients." in Page(rendered(folder, warehouse)).text


HOURS = [at(60 * hour) for hour in range(3)]
HOUR = timedelta(hours=1)


def shapes(chart: Markup, colour: str) -> list[list[tuple[float, float]]]:
    """The corners of all bars and lines of a colour."""
    paths = re.findall(rf'<path d="([^"]*)"[^>]*: var\(--{colour}\)', chart)
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML] (\S+) (\S+)", d)] for d in paths]


def heights(chart: Markup, colour: str) -> list[float]:
    ys = [[y for _, y in shape] for shape in shapes(chart, colour)]
    return [max(each) - min(each) for each in ys]


def test_bars_are_as_high_as_their_numbers() -> None:
    layers = [(BLUE, [1.0, 0, 2]), (ORANGE, [1.0, 0, 0])]
    chart = bars('<Changes> "', HOURS, HOUR, layers, COUNT)
    assert 'role="img" aria-label="&lt;Changes&gt; &#34;"' in chart
    one, none, two = heights(chart, "blue")
    assert [none, two] == pytest.approx([0, 2 * one], rel=0.01)
    assert heights(chart, "orange") == pytest.approx([one, 0, 0], rel=0.01)
    # on top of each other
    assert min(y for _, y in shapes(chart, "blue")[0]) == pytest.approx(
        max(y for _, y in shapes(chart, "orange")[0])
    )
    for text in ("12:00", "13:00", "14:00", ">0<", ">1<", ">2<"):
        assert text in chart


def test_numbers_of_an_axis_have_the_unit_of_the_greatest_one() -> None:
    assert ">2 h<" in bars("Time", HOURS, HOUR, [(BLUE, [9_000.0, 0, 0])], SECONDS)


def test_a_line_has_a_gap_where_a_number_is_not_known() -> None:
    times = [at(60 * hour) for hour in range(5)]
    chart = lines("Lag", times, [(BLUE, [1, 2, None, 4, None])], COUNT)
    (line,) = re.findall(r'<path d="([^"]*)"[^>]*stroke-width: 1.8', chart)
    assert re.findall("[ML]", line) == ["M", "L", "M"]
    assert chart.count("<use") == 3


def test_a_negative_lag_of_a_clock_that_is_ahead_lies_on_the_axis() -> None:
    chart = lines("Lag", HOURS, [(BLUE, [-60, -30, -90])], SECONDS)
    dots = {float(y) for y in re.findall(r'<use [^>]* y="([^"]*)"', chart)}
    assert len(dots) == 1
    assert 0 < dots.pop() < 144


def test_a_chart_of_nothing() -> None:
    for chart in (
        lines("Lag", HOURS, [(BLUE, [None] * 3)], COUNT),
        bars("Time", ["now"], None, [(BLUE, [1.5])], SECONDS),
    ):
        ElementTree.fromstring(chart.replace("xlink:", ""))


def test_no_two_charts_share_an_id(folder: Path) -> None:
    ids = re.findall(r' id="([^"]*)"', rendered(folder))
    assert len(ids) == len(set(ids))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[CliRunner]:
    (folder / "dbt_project.yml").write_text("name: shop\n", encoding="utf-8")
    monkeypatch.setenv("DBT_PROJECT_DIR", str(folder))
    monkeypatch.setenv("DBT_TARGET_PATH", str(folder))
    monkeypatch.setattr(report, "project_warehouse", lambda target: (Memory(), "lake"))
    monkeypatch.setattr(report, "load_profile", lambda target: Profile())
    yield CliRunner()


class Profile:
    target_name = "prod"


def test_the_command_writes_the_page_and_sums_up(command: CliRunner, folder: Path) -> None:
    result = command.invoke(app, ["report"])
    assert result.exit_code == 0, result.output
    file = folder / "afterimage_report.html"
    assert result.stdout.startswith(f"{file}: 3 tables, 3 failures, 4 warnings")
    assert "shop: pipeline health" in Page(file.read_text(encoding="utf-8")).text


def test_a_condition_fails_the_command_after_the_page_is_written(
    command: CliRunner, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "health.html"
    result = command.invoke(
        app, ["report", "--output", str(file), "--fail-if", "unresolved > 2 or behind > 1h"]
    )
    assert result.exit_code == 1
    line = "orders: unresolved > 2 (unresolved is 3)"
    assert result.stdout.splitlines()[1:] == [f"failed: {line}"]
    assert f"--fail-if : {line}" in Page(file.read_text(encoding="utf-8")).text


def test_an_output_that_cannot_be(command: CliRunner, tmp_path: Path) -> None:
    result = command.invoke(app, ["report", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"`report`: --output is {tmp_path}, which is a folder. Fix:")
    (tmp_path / "file").touch()
    result = command.invoke(app, ["report", "--output", str(tmp_path / "file" / "a.html")])
    assert result.exit_code == 1
    assert "cannot be written: " in result.stderr
    assert command.invoke(app, ["report", "--fail-if", "lagg > 1"]).exit_code == 2


def test_delta_commits_have_no_size(folder: Path) -> None:
    warehouse = Memory()
    warehouse.commits = {
        name: [TableVersion(each.committed_at, each.added, None, None) for each in versions]
        for name, versions in warehouse.commits.items()
    }
    page = Page(rendered(folder, warehouse))
    assert "- rows in change logs" in page.text
    assert "Iceberg records it, Delta does not" in page.text
