"""Runs a dbt command in the Spark driver that spark-submit, or an operator, has started.

    spark-submit --packages ... --conf ... run_dbt.py build --project-dir /opt/project

docs/spark.md says which settings spark-submit must be given.
"""

from __future__ import annotations

import sys

from dbt.cli.main import dbtRunner

# a driver that ends with another code than 0 counts as failed
sys.exit(0 if dbtRunner().invoke(sys.argv[1:]).success else 1)
