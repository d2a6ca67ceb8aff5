"""The change log of orders: every change once, updates with their before image."""

from dbt_afterimage.changes import build_changes


def model(dbt, session):
    dbt.config(materialized="change_log")
    return build_changes(dbt, session, dbt.ref("stg_qlik__orders"))
