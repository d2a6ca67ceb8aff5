{# Settings of one source table, validated, with defaults; {} while dbt parses. #}
{# Why through the adapter: the check is Python (src/dbt_afterimage/settings), shared with the Python models. #}
{% macro _settings(source_name, table_name) %}
    {%- if not execute -%}
        {{ return({}) }}
    {%- endif -%}
    {%- for node in graph.sources.values() -%}
        {%- if node.source_name == source_name and node.name == table_name -%}
            {{ return(adapter.afterimage.settings(node)) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "`_settings`: no source table " ~ source_name ~ "." ~ table_name
        ~ " is declared. Declare it in a sources YAML."
    ) }}
{% endmacro %}


{# Settings that govern a model: those of the change table that its staging model reads. #}
{# A staging model names its change table first (the base table comes second), so the first source counts. #}
{% macro _settings_of(node) %}
    {%- if not execute -%}
        {{ return({}) }}
    {%- endif -%}
    {%- if node.sources -%}
        {{ return(afterimage._settings(node.sources[0][0], node.sources[0][1])) }}
    {%- endif -%}
    {%- for id in node.depends_on.nodes -%}
        {%- if id in graph.nodes and graph.nodes[id].resource_type == 'model' -%}
            {{ return(afterimage._settings_of(graph.nodes[id])) }}
        {%- endif -%}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "`_settings_of`: no source table is upstream of " ~ node.name
        ~ ". A staging model must read a source() that declares `meta.afterimage`."
    ) }}
{% endmacro %}


{# Settings that govern a relation, which is a model of this project. #}
{% macro _settings_of_relation(relation) %}
    {{ return(afterimage._settings_of(afterimage._node_of_relation(relation))) }}
{% endmacro %}


{# The model of this project that a relation is. #}
{% macro _node_of_relation(relation) %}
    {%- set found = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.alias == relation.identifier -%}
        {%- if node.schema == relation.schema -%}
            {{ return(node) }}
        {%- endif -%}
        {%- do found.append(node) -%}
    {%- endfor -%}
    {#- with --defer a relation is in the schema of another target -#}
    {%- if found | length == 1 -%}
        {{ return(found[0]) }}
    {%- endif -%}
    {{ exceptions.raise_compiler_error(
        "`_node_of_relation`: " ~ relation ~ " is not a model of this project. Use ref('<name of the model>')."
    ) }}
{% endmacro %}
