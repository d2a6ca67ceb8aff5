"""An Airflow DAG by Cosmos: one dbt process for each model and its tests, on a warm Connect server.

Next to the project's profile Cosmos needs target/manifest.json, which `dbt parse` writes. For the
worker and the server see airflow_dag.py; docs/orchestration.md says what a process costs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cosmos import DbtDag, ProfileConfig, ProjectConfig, RenderConfig
from cosmos.constants import LoadMode, TestBehavior

PROJECT = "/opt/project"
RENDER = RenderConfig(
    load_method=LoadMode.DBT_MANIFEST,
    test_behavior=TestBehavior.AFTER_EACH,
    # `current_equals_open` reads history and current: it must wait for both
    should_detach_multiple_parents_tests=True,
)

afterimage_models = DbtDag(
    dag_id="afterimage_models",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # two runs must not write to one table at the same time; two models may be built at once
    max_active_runs=1,
    # a task that failed or was killed can be repeated
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    project_config=ProjectConfig(
        dbt_project_path=PROJECT,
        manifest_path=f"{PROJECT}/target/manifest.json",
        install_dbt_deps=False,
    ),
    profile_config=ProfileConfig(
        profile_name="afterimage",
        target_name="iceberg",
        profiles_yml_filepath=f"{PROJECT}/profiles.yml",
    ),
    render_config=RENDER,
    operator_args={
        "env": {
            "SPARK_REMOTE": "sc://spark.example.com:443/;use_ssl=true",
            "SPARK_CONNECT_AUTHENTICATE_TOKEN": "{{ conn.spark_connect.password }}",
        },
        "append_env": True,
    },
)
