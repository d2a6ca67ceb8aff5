"""Raw tables that nothing else lands."""

from __future__ import annotations

import json
import os
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt_afterimage.dbt_spark.macro_api.registry import dbt_errors, macro_method
from dbt_afterimage.dbt_spark.macro_api.tables import table_format
from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.spark.session import current

logger = AdapterLogger("afterimage")

KAFKA_OPTIONS = "AFTERIMAGE_KAFKA_OPTIONS"
"""Environment variable with options of the Kafka client as JSON: they may be secret."""


@macro_method()
def land_openedge(
    adapter: Any, options: dict[str, str], owner: str, tracking: str, tables: list[dict[str, Any]]
) -> dict[str, int]:
    """Extract tables of an OpenEdge database over JDBC; returns landed table -> new rows.

    Args:
        options: of Spark's JDBC reader; the password comes from the environment.
        owner: schema of the tables in the database.
        tracking: the table that the tracking table is landed in.
        tables: the fields of `ingest.openedge.extract.CapturedTable`, by name.

    Raises:
        DbtRuntimeError: the database cannot be read, or there is nothing to extract.
    """
    from dbt_afterimage.ingest.openedge.extract import CapturedTable, LandingError, land

    session = current()
    password = os.environ.get("AFTERIMAGE_JDBC_PASSWORD")
    given = {**options, **({"password": password} if password else {})}
    captured = [CapturedTable(**table) for table in tables]
    with dbt_errors(LandingError):
        return land(session, given, owner, tracking, captured, table_format(adapter))


@macro_method(while_parsing=0)
def land_kafka(adapter: Any, request: dict[str, Any], table: str, progress: str) -> int:
    """Land messages of a Kafka cluster; returns how many.

    Args:
        request: fields of `ingest.kafka.request.Request`, by name.

    Raises:
        DbtRuntimeError: the cluster cannot be read, or lacks what was not landed yet.
    """
    from dbt_afterimage.ingest.kafka.land import land
    from dbt_afterimage.ingest.kafka.request import KafkaLandingError, Request

    session = current()
    options = {**request.get("options", {}), **json.loads(os.environ.get(KAFKA_OPTIONS, "{}"))}
    wanted = Request(**{**request, "options": options})
    with dbt_errors(KafkaLandingError, ConcurrentRunError):
        return land(session, wanted, table, progress, table_format(adapter), logger.info)
