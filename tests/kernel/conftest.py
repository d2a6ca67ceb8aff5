"""Tests of this folder share a plain Spark session."""

from tests.plain_spark import spark

__all__ = ["spark"]
