"""The change log of pgbench_tellers: every change once."""

from dbt_afterimage.changes import build_changes


def model(dbt, session):
    dbt.config(materialized="change_log")
    return build_changes(dbt, session, dbt.ref("stg_postgres__pgbench_tellers"))
