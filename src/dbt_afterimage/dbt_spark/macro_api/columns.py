"""Names of the columns that the product adds to each layer."""

from __future__ import annotations

from typing import Any

from dbt_afterimage.change_log.contract import LOG_COLUMNS, RESERVED_COLUMNS, STAGED_COLUMNS
from dbt_afterimage.dbt_spark.macro_api.registry import macro_method
from dbt_afterimage.history.table import OWN_COLUMNS


@macro_method(while_parsing=[])
def staged_columns(adapter: Any) -> list[str]:
    """Columns of every staging model besides the data columns, in order."""
    return list(STAGED_COLUMNS)


@macro_method(while_parsing=[])
def log_columns(adapter: Any) -> list[str]:
    """Columns of every change log besides the data columns."""
    return [*LOG_COLUMNS, "before"]


@macro_method(while_parsing=[])
def reserved_columns(adapter: Any) -> list[str]:
    """Names that staging models, change logs and tables of rejected records use themselves."""
    return sorted(RESERVED_COLUMNS)


@macro_method(while_parsing=[])
def history_own_columns(adapter: Any) -> list[str]:
    """Columns that every history adds to the data, besides its surrogate key."""
    return list(OWN_COLUMNS)
