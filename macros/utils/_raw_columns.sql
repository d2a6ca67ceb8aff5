{# Columns of a table as [{name, data_type}]; empty while dbt parses or when the table is not there yet. #}
{% macro _raw_columns(relation) %}
    {%- set columns = [] -%}
    {%- if execute -%}
        {%- for column in adapter.get_columns_in_relation(relation) -%}
            {%- do columns.append({'name': column.name, 'data_type': column.dtype}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(columns) }}
{% endmacro %}
