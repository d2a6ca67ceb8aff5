"""The report: medians and ratios as Markdown, all figures as JSON."""

from __future__ import annotations

import json
import platform
import statistics
from importlib.metadata import version

from benchmarks.chain import Chain
from benchmarks.project import spark_settings

# step, its baseline, the target ratio for 100,000 changes on 1,000,000 rows: of Iceberg, of Delta
COMPARISONS = (
    ("staging", "staging without masks", 1.2, 1.2),
    ("items_changes", "unpaired log", 2.5, 2.5),
    ("items_changes", "append items_changes", None, None),
    ("items_history", "append items_history", 3.0, 4.2),
    ("items_history", "hand-written history", 1.1, 1.1),
    ("items_history, late changes", "append items_history, late changes", 5.0, 5.0),
    ("items_history, late changes", "items_history", None, None),
    ("items_current", "append items_current", 3.5, 7.0),
    ("items_current", "hand-written current", None, None),
    ("items_field_changes", "append items_field_changes", 2.5, 2.5),
    ("dbt run", "dbt snapshot", 0.6, 1.2),
    ("empty run", "dbt run", None, None),
)


def as_markdown(chain: Chain) -> str:
    """A table: each step and its baseline with median and range, their ratio, and the target."""
    lines = [
        f"{chain.warehouse.table_format}: {chain.workload.changes:,} changes "
        f"on {chain.workload.keys:,} rows of {chain.workload.columns} columns, "
        f"medians of {len(chain.seconds['dbt run'])}",
        "",
        "| step | rows | seconds | baseline | seconds | ratio | target ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for step, baseline, of_iceberg, of_delta in COMPARISONS:
        target = of_iceberg if chain.warehouse.table_format == "iceberg" else of_delta
        if step in chain.seconds and baseline in chain.seconds:
            ratio = _median(chain, step) / _median(chain, baseline)
            lines.append(
                f"| {step} | {chain.rows.get(step, ''):{',' if step in chain.rows else ''}} "
                f"| {_median_and_range(chain, step)} "
                f"| {baseline} | {_median_and_range(chain, baseline)} "
                f"| {ratio:.2f} | {f'<= {target}' if target else ''} |"
            )
    return "\n".join(lines) + "\n"


def as_json(chain: Chain) -> str:
    """All figures, with the versions and settings that produced them."""
    return json.dumps(
        {
            "table_format": chain.warehouse.table_format,
            "workload": vars(chain.workload),
            "versions": {
                "python": platform.python_version(),
                "spark": chain.warehouse.session.version,
                "dbt-core": version("dbt-core"),
                "dbt-spark": version("dbt-spark"),
            },
            "settings": spark_settings(chain.warehouse.table_format),
            "rows": chain.rows,
            "seconds": chain.seconds,
        },
        indent=2,
    )


def _median(chain: Chain, name: str) -> float:
    return statistics.median(chain.seconds[name])


def _median_and_range(chain: Chain, name: str) -> str:
    figures = chain.seconds[name]
    return f"{_median(chain, name):.1f} ({min(figures):.1f} to {max(figures):.1f})"
