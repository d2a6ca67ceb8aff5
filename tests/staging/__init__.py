"""Tests of how records are decoded and staged, in a plain Spark session, without dbt."""
