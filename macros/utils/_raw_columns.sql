{#
    Columns of a table as [{name, data_type}]; empty while dbt parses or when the table is not there yet.
    Under `method: session` Spark is asked for its schema: `describe extended`, which dbt sends, costs four times as much.
#}
{% macro _raw_columns(relation) %}
    {%- set columns = [] -%}
    {%- if execute and adapter.afterimage_connection_method() == 'session' -%}
        {{ return(adapter.afterimage_columns(relation)) }}
    {%- elif execute -%}
        {%- for column in adapter.get_columns_in_relation(relation) -%}
            {%- do columns.append({'name': column.name, 'data_type': column.dtype}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(columns) }}
{% endmacro %}
