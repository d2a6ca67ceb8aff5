{#
    Lands one batch of the demo's raw change tables, or sends it to Kafka: dbt run-operation land_demo --args '{batch: 1}'.
    A run-operation, because it runs in the Spark session of the profile's target.

    Arguments:
      batch    1 creates the raw tables again, 2 adds to them, and so on
      scale    size of the data; 1 has about 2,500 change records
      seed     of the generator
      system   whose demo
      brokers  of a Kafka cluster, for the demo that sends messages there; they are landed from it by `land_kafka`
      database  URL of the database that the demo changes
      connector  URL of the connector that captures it
#}
{% macro land_demo(batch, scale=1, seed=7, system='qlik', brokers=none, database=none, connector=none) %}
    {%- do run_query("create schema if not exists " ~ var('demo_raw_schema')) -%}
    {%- do afterimage._create_progress() -%}
    {%- set destination = {
        'schema': var('demo_raw_schema'),
        'progress': afterimage._progress_relation() | string,
        'brokers': brokers,
        'database': database,
        'connector': connector,
        'table_format': adapter.afterimage.table_format(),
    } -%}
    {%- do adapter.afterimage.land_demo(system, batch | int, scale | int, seed | int, destination) -%}
    {%- set where = 'Kafka' if brokers or database else var('demo_raw_schema') -%}
    {%- do log("Batch " ~ batch ~ " of the demo of " ~ system ~ " is in " ~ where, info=true) -%}
{% endmacro %}
