"""Column comments that travel with a DataFrame into the table that is created from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt_afterimage.spark.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def describe_columns(rows: DataFrame, descriptions: Mapping[str, str]) -> DataFrame:
    """The same rows; columns with a description carry it as their comment."""
    from pyspark.sql import functions as F

    return rows.select(
        *[
            F.col(quoted(name)).alias(name, metadata={"comment": descriptions[name]})
            if descriptions.get(name)
            else F.col(quoted(name))
            for name in rows.columns
        ]
    )
