{#
    Extracts the tables of a source from an OpenEdge database: what `afterimage land openedge` runs.
    A run-operation, because it runs in the Spark session of the profile's target.

    Arguments:
      source_name  the dbt source; its tables with a `table_number` are extracted. A table's `name` is that of its change
                   table in the database, its `identifier` that of the landed table.
      options      options of Spark's JDBC reader; the password comes from AFTERIMAGE_JDBC_PASSWORD
      owner        schema of the tables in the database
#}
{% macro land_openedge(source_name, options, owner='PUB') %}
    {%- set tables = [] -%}
    {%- set tracking = [] -%}
    {%- for node in graph.sources.values() if node.source_name == source_name -%}
        {%- set relation = source(source_name, node.name) -%}
        {%- do run_query("create schema if not exists " ~ relation.schema) -%}
        {%- if node.name == '_Cdc-Change-Tracking' -%}
            {%- do tracking.append(relation | string) -%}
        {%- else -%}
            {%- set settings = adapter.afterimage.settings(node) -%}
            {%- if settings.get('table_number') is not none -%}
                {%- do tables.append({
                    'name': node.name,
                    'landed': relation | string,
                    'number': settings.table_number,
                    'look_back': settings.look_back,
                    'has_values': settings.policy_level > 1,
                    'other_policies': settings.other_policies,
                }) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not tracking -%}
        {{ exceptions.raise_compiler_error(
            "`land_openedge`: source " ~ source_name ~ " has no table `_Cdc-Change-Tracking`. Fix: declare it, with"
            ~ " `identifier: cdc_change_tracking` to land it under another name."
        ) }}
    {%- endif -%}
    {%- for landed, rows in adapter.afterimage.land_openedge(options, owner, tracking[0], tables).items() -%}
        {%- do log("Landed " ~ rows ~ " new rows in " ~ landed, info=true) -%}
    {%- endfor -%}
{% endmacro %}
