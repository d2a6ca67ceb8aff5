{#
    Columns of a table as [{name, data_type}]; empty while dbt parses or when the table is not there yet.
    Reads the schema through Spark: `describe extended`, which dbt sends, costs four times as much.
#}
{% macro _raw_columns(relation) %}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {{ return(adapter.afterimage.columns(relation)) }}
{% endmacro %}


{# The columns that the source's YAML declares for a table, by their names in lower case. #}
{% macro _declared_columns(settings) %}
    {%- set declared = {} -%}
    {%- for column in settings.declared_columns -%}
        {%- do declared.update({column.name | lower: column}) -%}
    {%- endfor -%}
    {{ return(declared) }}
{% endmacro %}


{# The properties of a table or view that this project gave it; empty for one made by something else. #}
{% macro _own_properties(relation) %}
    {%- set properties = {} -%}
    {%- for row in run_query("show tblproperties " ~ relation) if row[0].startswith('afterimage.') -%}
        {%- do properties.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(properties) }}
{% endmacro %}


{#
    The same for a table that a staging model reads: a run stops where there is none. A command that only compiles goes on
    with the columns that are declared.
#}
{% macro _landed_columns(macro, relation) %}
    {%- set found = afterimage._raw_columns(relation) -%}
    {%- if execute and not found and flags.WHICH in ('run', 'build', 'retry') -%}
        {%- do afterimage._stop_for_missing(macro, relation) -%}
    {%- endif -%}
    {{ return(found) }}
{% endmacro %}


{# Stops because a raw table does not exist. #}
{% macro _stop_for_missing(macro, relation) %}
    {{ exceptions.raise_compiler_error(
        "`" ~ macro ~ "`: " ~ adapter.afterimage.describe_missing(relation) ~ " Fix: correct `schema` and `identifier` of the"
        ~ " source table, or land the table, and run again."
    ) }}
{% endmacro %}
