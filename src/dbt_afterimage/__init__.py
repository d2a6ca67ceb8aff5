"""afterimage: history, current state and field changes from the change tables of replication tools.

dbt imports every top-level module whose name starts with ``dbt_`` and reads its ``plugins``
(dbt/plugins/manager.py). That happens in every dbt command of every project in the environment, so
nothing here may import Spark, dbt or pydantic: ``plugins`` is built when it is first accessed.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> Any:
    if name == "plugins":
        from dbt_afterimage.dbt_spark.plugin import AfterimagePlugin

        return [AfterimagePlugin]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
