{#
    Lands the messages of a source from a Kafka cluster: what `afterimage land kafka` runs.
    A run-operation, because it runs in the Spark session of the profile's target.

    Arguments:
      source_name  the dbt source
      table_name   the table in it that holds the landed messages
      request      what to land: the fields of `ingest.kafka.request.Request`, by name
#}
{% macro land_kafka(source_name, request, table_name='messages') %}
    {%- set relation = source(source_name, table_name) -%}
    {%- do run_query("create schema if not exists " ~ relation.schema) -%}
    {%- do afterimage._create_progress() -%}
    {%- set count = adapter.afterimage.land_kafka(request, relation | string, afterimage._progress_relation() | string) -%}
    {%- do log("Landed " ~ count ~ " new messages in " ~ relation, info=true) -%}
{% endmacro %}
