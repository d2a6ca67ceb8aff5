"""The messages of the shop, decoded once: JSON, and Avro by a registry."""

from dbt_afterimage.messages import build_messages


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_messages(dbt, session, dbt.source("demo_shop", "messages"))
