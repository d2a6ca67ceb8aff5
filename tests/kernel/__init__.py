"""Tests of DataFrame transforms in a plain Spark session, without dbt."""
