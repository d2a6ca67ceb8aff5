"""The messages of the checkout, decoded once: Avro in the Qlik envelope, and metadata messages."""

from dbt_afterimage.messages import build_messages


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_messages(dbt, session, dbt.source("demo_checkout", "messages"))
