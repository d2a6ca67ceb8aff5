{#
    Columns of a table as [{name, data_type}]; empty while dbt parses or when the table is not there yet.
    Spark is asked for its schema: `describe extended`, which dbt sends, costs four times as much.
#}
{% macro _raw_columns(relation) %}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {{ return(adapter.afterimage_columns(relation)) }}
{% endmacro %}


{# The properties of a table or view that this project gave it; empty for one made by something else. #}
{% macro _own_properties(relation) %}
    {%- set properties = {} -%}
    {%- for row in run_query("show tblproperties " ~ relation) if row[0].startswith('afterimage.') -%}
        {%- do properties.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(properties) }}
{% endmacro %}
