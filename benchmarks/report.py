"""Medians and ratios of what was measured, as Markdown and as JSON."""

from __future__ import annotations

import json
import platform
import statistics
from importlib.metadata import version

from benchmarks.chain import Chain
from benchmarks.project import spark_settings

# step, what it is compared with, the ratio that it should keep below
COMPARISONS = (
    ("staging", "staging without masks", 1.2),
    ("items_changes", "unpaired log", 1.5),
    ("items_changes", "append items_changes", None),
    ("items_history", "append items_history", 2.0),
    ("items_history", "hand-written history", 0.67),
    ("items_history, late changes", "append items_history, late changes", None),
    ("items_history, late changes", "items_history", None),
    ("items_current", "append items_current", 2.0),
    ("items_current", "hand-written current", None),
    ("items_field_changes", "append items_field_changes", 1.3),
    ("dbt run", "dbt snapshot", 0.25),
    ("empty run", "dbt run", None),
)


def as_markdown(chain: Chain) -> str:
    """A table: step, its median and spread, what it is compared with, the ratio and its target."""
    lines = [
        f"{chain.lakehouse.table_format}: {chain.feed.changes:,} changes "
        f"on {chain.feed.keys:,} rows of {chain.feed.columns} columns, "
        f"medians of {len(chain.seconds['dbt run'])}",
        "",
        "| step | rows | seconds | beside | seconds | ratio | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for step, beside, target in COMPARISONS:
        if step in chain.seconds and beside in chain.seconds:
            ratio = _median(chain, step) / _median(chain, beside)
            lines.append(
                f"| {step} | {chain.rows.get(step, ''):{',' if step in chain.rows else ''}} "
                f"| {_spread(chain, step)} | {beside} | {_spread(chain, beside)} | {ratio:.2f} "
                f"| {f'<= {target}' if target else ''} |"
            )
    return "\n".join(lines) + "\n"


def as_json(chain: Chain) -> str:
    """All figures, with versions and settings."""
    return json.dumps(
        {
            "table_format": chain.lakehouse.table_format,
            "feed": vars(chain.feed),
            "versions": {
                "python": platform.python_version(),
                "spark": chain.lakehouse.session.version,
                "dbt-core": version("dbt-core"),
                "dbt-spark": version("dbt-spark"),
            },
            "settings": spark_settings(chain.lakehouse.table_format),
            "rows": chain.rows,
            "seconds": chain.seconds,
        },
        indent=2,
    )


def _median(chain: Chain, name: str) -> float:
    return statistics.median(chain.seconds[name])


def _spread(chain: Chain, name: str) -> str:
    figures = chain.seconds[name]
    return f"{_median(chain, name):.1f} ({min(figures):.1f} to {max(figures):.1f})"
