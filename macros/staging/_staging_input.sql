{#
    What the macro of a staging model over a raw table starts from: the relations, the settings, and the columns of the raw
    table. The columns are empty while dbt parses, when neither tables nor settings are known. Sets the materialization.
#}
{% macro _staging_input(macro_name, source_name, table_name, base) %}
    {{- config(materialized='staging_view') -}}
    {%- set relation = source(source_name, table_name) -%}
    {%- set settings = afterimage._settings(source_name, table_name) -%}
    {{ return({
        'relation': relation,
        'base_relation': source(source_name, base) if base else none,
        'settings': settings,
        'table': source_name ~ '.' ~ table_name,
        'raw_columns': afterimage._landed_columns(macro_name, relation) or settings.get('declared_columns', []),
    }) }}
{% endmacro %}
