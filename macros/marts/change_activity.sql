{#
    The body of a `change_activity` model: one row per table and hour, with what was changed in it, over several change
    logs. This is the whole table, as a first run builds it; `_change_activity_batch.sql` is what a later run adds.

    Arguments:
      tables  names of tables; the change log of each is the model `<table>_changes`
#}
{% macro change_activity(tables) %}
    {{- config(materialized='change_mart', mart='change_activity') -}}
    {%- if tables is string or tables is mapping or not tables -%}
        {{ exceptions.raise_compiler_error(
            "`change_activity`: `tables` of " ~ model.name ~ " is a list of table names, got " ~ tables
            ~ ". Write change_activity(['orders', 'invoices']); the change log of each is the model `<table>_changes`."
        ) }}
    {%- endif -%}
    {%- set logs = [] -%}
    {%- for table in tables -%}
        {%- do logs.append({'table': table, 'changes': ref(table ~ '_changes'), 'counted': {}}) -%}
    {%- endfor -%}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {{ return(_change_activity_rows(logs)) }}
{% endmacro %}
