{#
    The body of a `change_activity` model: one row per table and hour, with what was changed in it, over several change
    logs. This is the whole table, as a first run builds it; `_change_activity_batch.sql` is what a later run adds.

    Without `tables` the logs are taken from dbt's graph when the model runs. dbt knows references at parse time only, when
    the graph is empty: the plugin adds all change logs to the lineage of such a model, so that it runs after them. A log
    that has not been built yet is left out.

    Arguments:
      tables  names of tables; the change log of each is the model `<table>_changes`. By default all change logs.
#}
{% macro change_activity(tables=none) %}
    {{- config(materialized='change_activity', counts_all_change_logs=tables is none) -}}
    {%- if tables is not none and (tables is string or tables is mapping or not tables) -%}
        {{ exceptions.raise_compiler_error(
            "`change_activity`: `tables` of " ~ model.name ~ " is a list of table names, got " ~ tables
            ~ ". Fix: write change_activity(['orders', 'invoices']); the change log of each is the model `<table>_changes`."
            ~ " Or write change_activity() to count all change logs."
        ) }}
    {%- endif -%}
    {%- set logs = [] -%}
    {%- for table in tables or [] -%}
        {%- set changes = ref(table ~ '_changes') -%}
        {%- do logs.append(afterimage._counted_log(table, changes)) if execute -%}
    {%- endfor -%}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {{ return(afterimage._change_activity_rows(logs if tables is not none else afterimage._all_change_logs())) }}
{% endmacro %}


{# A change log of which nothing is counted yet: {table, changes, node, counted}. #}
{% macro _counted_log(table, changes, node=none) %}
    {{ return({'table': table, 'changes': changes, 'node': node or afterimage._log_of(table), 'counted': {}}) }}
{% endmacro %}


{# All change logs of dbt's graph that are built. #}
{% macro _all_change_logs() %}
    {%- set logs = [] -%}
    {%- for node in graph.nodes.values() | sort(attribute='name')
        if node.resource_type == 'model' and node.config.materialized == 'change_log' -%}
        {%- set changes = load_relation(afterimage._relation_of(node)) -%}
        {%- if changes is not none -%}
            {%- do logs.append(afterimage._counted_log(modules.re.sub('_changes$', '', node.name), changes, node)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(logs) }}
{% endmacro %}


{# The node of a table's change log, among those that the model reads. #}
{% macro _log_of(table) %}
    {%- for id in model.depends_on.nodes if id in graph.nodes and graph.nodes[id].name == table ~ '_changes' -%}
        {{ return(graph.nodes[id]) }}
    {%- endfor -%}
    {{ return(model) }}
{% endmacro %}
