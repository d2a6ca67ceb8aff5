"""The change log of payments: every change once."""

from dbt_afterimage.changes import build_changes


def model(dbt, session):
    dbt.config(materialized="change_log")
    return build_changes(dbt, session, dbt.ref("stg_mariadb__payments"))
