"""Renders the facts as one HTML page with its style and charts inside; no script, no other file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from dbt_afterimage.cli.commands.report import charts
from dbt_afterimage.cli.commands.report.batches import rows_between
from dbt_afterimage.cli.commands.report.facts import Facts
from dbt_afterimage.cli.commands.report.findings import Finding, newest_runs
from dbt_afterimage.cli.frame import printable
from dbt_afterimage.cli.support.runs import Run, slowest_steps
from dbt_afterimage.cli.support.units import BYTES, COUNT, SECONDS, moment
from dbt_afterimage.storage.compaction import MANY_FILES

_RUNS, _STEPS, _BATCHES = 20, 15, 30
_MESSAGE = 600
_MODELS = ("model", "seed", "snapshot")
_TESTS = ("test", "unit_test")


def render(facts: Facts, found: Iterable[Finding], project: str, target: str) -> str:
    """The page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__ or "", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": lambda value: "-" if value is None else f"{value:,}",
        "seconds": SECONDS.text,
        "bytes": BYTES.text,
        "moment": moment,
        "share": lambda value: "-" if value is None else f"{value:.1%}",
        "with_code": _with_code,
        "shortened": lambda text: text if len(text) <= _MESSAGE else f"{text[:_MESSAGE]} ...",
    }
    runs = facts.runs[:_RUNS]
    activity = facts.activity
    page = environment.get_template("report.html.jinja").render(
        facts=facts,
        findings=list(found),
        project=project,
        target=target,
        totals=totals(facts),
        raw=_raw_totals(facts),
        charts=charts.activity_charts(activity) if activity else [],
        hidden_charts=max(0, len(activity.tables) - charts.MOST_TABLES) if activity else 0,
        quiet=[
            each.table for each in facts.tables if activity and each.table not in activity.tables
        ],
        period=activity.period if activity else None,
        bucket=_width(activity.period.width) if activity else "",
        storage=charts.storage_chart(facts.growth) if facts.growth else None,
        runs=[_run_row(facts, run) for run in runs],
        runs_chart=charts.runs_chart(runs) if runs else None,
        steps=slowest_steps(runs, _STEPS),
        batches=facts.batches[:_BATCHES],
        many_files=MANY_FILES,
    )
    return printable(page)


def _with_code(text: str) -> Markup:
    """Text whose parts in backticks are shown as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part
        for index, part in enumerate(parts)
    )


def totals(facts: Facts) -> dict[str, int | float | None]:
    """The figures at the top of the page."""
    tables = facts.tables
    return {
        "tables": len(facts.flows),
        "behind": sum(bool(each.behind) for each in tables),
        "failed": sum(run.failures for run in newest_runs(facts.runs)) if facts.runs else None,
        "unresolved": sum(each.unresolved for each in tables),
        "rejected": sum(each.rejected for each in tables),
        "age": min((each.age for each in tables if each.age is not None), default=None),
        "lag": max((each.lag for each in tables if each.lag is not None), default=None),
        "bytes": sum(each.bytes for each in tables),
        "changes": _sum(flow.log.rows for flow in facts.flows if flow.status),
        "versions": _mart_rows(facts, "_history"),
        "current": _mart_rows(facts, "_current"),
        "field_changes": _mart_rows(facts, "_field_changes"),
    }


def _mart_rows(facts: Facts, suffix: str) -> int | None:
    return _sum(
        mart.rows for flow in facts.flows for mart in flow.marts if mart.name == flow.table + suffix
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum; None if there is no number, or one that is not known."""
    found = list(numbers)
    if not found or None in found:
        return None
    return sum(each for each in found if each is not None)


def _raw_totals(facts: Facts) -> dict[str, int] | None:
    """How many raw tables there are, and how many are missing; None without a manifest."""
    known = [flow.raw for flow in facts.flows if flow.raw is not None]
    if not known:
        return None
    tables = {raw.name: raw.exists for each in known for raw in each}
    return {"tables": len(tables), "missing": sum(not exists for exists in tables.values())}


def _run_row(facts: Facts, run: Run) -> dict[str, Any]:
    # the first batch is recorded after the start, and time stamps are rounded
    rows = rows_between(facts.batches, run.started_at, run.ended_at + timedelta(seconds=1))
    slowest = max(run.steps, key=lambda step: step.seconds, default=None)
    return {
        "of": run,
        "models": run.count(_MODELS),
        "tests": run.count(_TESTS),
        "warned": sum(step.status == "warn" for step in run.steps),
        "skipped": sum(step.is_skipped for step in run.steps),
        "rows": rows,
        "rate": COUNT.text(rows / run.seconds) if rows and run.seconds else "-",
        "slowest": slowest,
    }


def _width(width: timedelta) -> str:
    """Width of a bucket as `hour`, `3 hours` or `2 days`."""
    count, name = (width.days, "day") if width.days else (width.seconds // 3600, "hour")
    return name if count == 1 else f"{count} {name}s"
