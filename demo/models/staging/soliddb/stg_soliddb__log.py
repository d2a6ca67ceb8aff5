"""The transaction log, decoded once for all tables."""

from dbt_afterimage.soliddb import build_log


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_log(
        dbt,
        session,
        log=dbt.source("demo_soliddb", "sys_log"),
        tables=dbt.source("demo_soliddb", "sys_tables"),
        columns=dbt.source("demo_soliddb", "sys_columns"),
    )
