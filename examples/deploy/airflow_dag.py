"""An Airflow DAG: one dbt build an hour on a warm Spark Connect server.

The worker needs no Java, but `pip install 'dbt-afterimage[connect]'` and the project's folder, in
which `dbt deps` has run. The server (`afterimage server`) is behind a proxy with TLS; its token is
the password of Airflow's connection `spark_connect`, which Airflow masks in logs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="afterimage",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # two runs must not write to one table at the same time
    max_active_runs=1,
    # a run that failed or was killed can be repeated
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
):
    BashOperator(
        task_id="build",
        bash_command="dbt build --project-dir /opt/project --profiles-dir /opt/project",
        env={
            "SPARK_REMOTE": "sc://spark.example.com:443/;use_ssl=true",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": "{{ conn.spark_connect.password }}",
        },
        append_env=True,
    )
