{#
    Keeps the project's tables quick to read after many small batches:

        dbt run-operation compact --args '{models: [orders_history], keep_days: 7, max_files: 1000}'

    Small files become larger ones, files with many deleted rows are rewritten, old states expire. A call's work is
    bounded; the next call continues. Do not run it while a run writes to the same tables: one of the two would stop.

    Arguments:
      models     names of models; by default all change logs, decoded logs and marts that were built, with their
                 rejected records and feeds, and the progress table
      keep_days  days for which old states stay readable; on Delta the table's `delta.deletedFileRetentionDuration` applies
      max_files  rewrites up to this many data files of a table; Delta rewrites all small files
#}
{% macro compact(models=none, keep_days=7, max_files=1000) %}
    {%- for relation in afterimage._compacted_relations(models) -%}
        {%- if load_relation(relation) is not none -%}
            {%- do log(relation.identifier ~ ': ' ~ adapter.afterimage.compact(relation, keep_days, max_files), info=true) -%}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}


{# The tables that models write, those of rejected records, feeds and progress too. #}
{% macro _compacted_relations(models) %}
    {%- set relations = [] -%}
    {%- set known = [] -%}
    {%- set written = ['change_log', 'staging_log', 'joined_history', 'cuts'] + afterimage._mart_materializations() -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized in written -%}
        {%- do known.append(node.name) -%}
        {%- if models is none or node.name in models -%}
            {%- set relation = afterimage._relation_of(node) -%}
            {%- do relations.append(relation) -%}
            {%- if node.config.materialized == 'change_log' -%}
                {%- do relations.append(afterimage._rejected_relation(relation)) -%}
            {%- elif node.config.materialized == 'scd2_history' -%}
                {%- do relations.append(afterimage._feed_relation(relation)) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in models or [] if name not in known -%}
        {{ exceptions.raise_compiler_error(
            "`compact`: no table of afterimage is the model `" ~ name ~ "`. Allowed: " ~ known | sort | join(', ')
            ~ ". Nothing was done. Fix: correct `models`."
        ) }}
    {%- endfor -%}
    {{ return(relations if models is not none else relations + [afterimage._progress_relation()]) }}
{% endmacro %}
