"""Findings that need attention, in words, the most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt_afterimage.cli.commands.report.facts import Facts, Flow
from dbt_afterimage.cli.support.runs import Run
from dbt_afterimage.cli.support.units import SECONDS, moment

FAILED, WARNING = "failed", "warning"


@dataclass(frozen=True)
class Finding:
    """Something that needs attention; commands in its texts are in backticks.

    Attributes:
        state: `failed`: data is missing or a limit is exceeded; `warning`: it can wait.
        text: what it is.
        fix: what to do; "" where the text says it.
        detail: a longer text, such as the message of a failed step; may be "".
    """

    state: str
    text: str
    fix: str = ""
    detail: str = ""


def findings(facts: Facts, violations: list[str]) -> list[Finding]:
    """All findings, failures first.

    Args:
        violations: a line for each condition of `--fail-if` that holds.
    """
    found = [Finding(FAILED, f"`--fail-if`: {line}") for line in violations]
    for run in newest_runs(facts.runs):
        found += _of_run(run)
    for flow in facts.flows:
        found += _of_flow(flow)
    return sorted(found, key=lambda finding: finding.state != FAILED)


def newest_runs(runs: Sequence[Run]) -> list[Run]:
    """The newest run and, if that one only tested, the newest one that built models."""
    builds = [run for run in runs if run.count(["model"])]
    return list(dict.fromkeys([*runs[:1], *builds[:1]]))


def _of_run(run: Run) -> Iterator[Finding]:
    when = f"`dbt {run.command}` of {moment(run.started_at)} UTC"
    if run.error is not None:
        yield Finding(FAILED, f"{when} ended before its first step.", detail=run.error)
    for step in run.failed:
        skipped = ""
        if step is run.failed[0] and (count := sum(each.is_skipped for each in run.steps)):
            skipped = f" {count:,} steps of this run were skipped."
        yield Finding(
            FAILED, f"{step.kind} {step.name} failed in {when}.{skipped}", detail=step.message or ""
        )


def _of_flow(flow: Flow) -> Iterator[Finding]:
    for raw in flow.raw or []:
        if not raw.exists:
            yield Finding(
                FAILED,
                f"{flow.table}: its raw table {raw.name} does not exist.",
                "land it, or correct `schema` or `identifier` of the source.",
            )
    status = flow.status
    if status is None or status.last_batch is None:
        yield Finding(
            FAILED,
            f"{flow.table}: its change log has no batch yet.",
            f"`dbt build --select +{flow.log.name}+`",
        )
        return
    behind = [mart for mart in flow.marts if mart.behind]
    if behind:
        names = ", ".join(f"{mart.name} ({SECONDS.text(mart.behind)})" for mart in behind)
        yield Finding(
            WARNING,
            f"{flow.table}: behind its change log: {names}.",
            f"`dbt build --select {flow.log.name}+`",
        )
    if status.unresolved:
        yield Finding(
            WARNING,
            f"{flow.table}: {status.unresolved:,} unresolved rejected records.",
            f"`afterimage rejects {flow.table}`",
        )
    if status.compaction_due:
        names = " ".join(f"--model {name}" for name in status.compaction_due)
        yield Finding(
            WARNING,
            f"{flow.table}: {len(status.compaction_due):,} tables with more than 100 files.",
            f"`afterimage compact {names}`",
        )
