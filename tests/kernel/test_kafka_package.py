"""A Spark without the data source for Kafka, as this session is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.ingest.kafka.land import check_source
from dbt_afterimage.ingest.kafka.request import PACKAGE, KafkaLandingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_package_that_is_missing_is_named(spark: SparkSession) -> None:
    with pytest.raises(KafkaLandingError) as error:
        check_source(spark)
    assert f"{PACKAGE}:{spark.version}" in str(error.value)
    assert "spark.jars.packages" in str(error.value)
