{# The progress table: what every model has applied; one per target schema. #}
{% macro _progress_relation() %}
    {{ return(api.Relation.create(schema=target.schema, identifier='afterimage_progress', type='table')) }}
{% endmacro %}


{# The table of what `afterimage erase` removed, in the schema of the progress table; created by the first erasure. #}
{% macro _erasures_relation() %}
    {{ return(api.Relation.create(schema=target.schema, identifier='afterimage_erasures', type='table')) }}
{% endmacro %}


{#
    The name of a table in the progress table: with its schema unless that is the target's, since projects with their own
    schemas may share a target.
#}
{% macro _progress_name(relation) %}
    {{ return(relation.identifier if relation.schema == target.schema else relation.schema ~ '.' ~ relation.identifier) }}
{% endmacro %}


{# The table that a node of dbt's graph is built as. #}
{% macro _relation_of(node) %}
    {{ return(api.Relation.create(schema=node.schema, identifier=node.alias, type='table')) }}
{% endmacro %}


{# The first model of a kind that a model reads; none if it reads none. #}
{% macro _upstream_of_kind(node, kind) %}
    {%- for id in node.depends_on.nodes if id in graph.nodes and graph.nodes[id].config.materialized == kind -%}
        {{ return(graph.nodes[id]) }}
    {%- endfor -%}
    {{ return(none) }}
{% endmacro %}


{% macro _progress_names(relations) %}
    {%- set names = [] -%}
    {%- for relation in relations -%}
        {%- do names.append(afterimage._progress_name(relation)) -%}
    {%- endfor -%}
    {{ return(names) }}
{% endmacro %}


{# Creates the progress table on the first run. Later runs commit nothing, unless it has many small files. #}
{% macro _create_progress() %}
    {%- set batch = "string comment 'JSON: the batch before it; what the batch of a log holds; columns unknown to a history; rows of afterimage_erasures'" -%}
    {%- set table_version = "string comment 'version of the table (of a feed: of its history) after the publication: Iceberg snapshot id or Delta version'" -%}
    {%- do run_query("create schema if not exists " ~ target.schema) -%}
    {%- set statement -%}
        create table if not exists {{ afterimage._progress_relation() }} (
            model string comment 'the table that was published to, with its schema where that is not the schema of the target',
            recorded_at timestamp comment 'the last batch of the change log that it has applied',
            change_seq string comment 'greatest change_seq that it has applied',
            changed_at timestamp comment 'greatest changed_at that it has applied',
            path string comment 'how it did so: incremental, replay or rebuild; NULL for change logs',
            arrival string comment 'greatest mark of arrival that a change log has read; NULL where there are none',
            raw_version string comment 'of a change log or a decoded log: JSON with the versions of the raw tables that it has read; of a landing: topic ids',
            batch {{ batch }},
            table_version {{ table_version }}
        )
        {{ adapter.afterimage.table_options() }}
        comment 'One row per publication of a model: what it had applied by then'
    {%- endset -%}
    {%- do run_query(statement) -%}
    {%- do adapter.afterimage.add_progress_column(afterimage._progress_relation(), 'batch', batch) -%}
    {%- do adapter.afterimage.add_progress_column(afterimage._progress_relation(), 'table_version', table_version) -%}
    {#- each model of a run adds a file, and each run reads them all -#}
    {%- do adapter.afterimage.maintain_progress(afterimage._progress_relation()) -%}
    {%- do adapter.afterimage.begin_command(afterimage._progress_relation()) -%}
{% endmacro %}


{# The progress of a table: {recorded_at, change_seq, changed_at}, each none before its first publication. #}
{% macro _read_progress(relation) %}
    {{ return(afterimage._progress_by(relation, [])[afterimage._progress_name(relation)]) }}
{% endmacro %}


{# The progress of a mart and its inputs, by relation name, with their publications since its last batch; see `progress_since`. #}
{% macro _progress_by(mart, inputs) %}
    {{ return(adapter.afterimage.progress_since(
        afterimage._progress_relation(), afterimage._progress_name(mart), afterimage._progress_names([mart] + inputs)
    )) }}
{% endmacro %}


{#
    Condition: recorded in a batch after this one; true when there is none.

    batches  those batches; none where they are not known
#}
{% macro _recorded_after(recorded_at, batches=none) %}
    {{- return(adapter.afterimage.is_of_batches(recorded_at, batches)) -}}
{% endmacro %}


{#
    Appends what has just been published to a table.

    after  the batch that the table had applied before; none for a new table
#}
{% macro _write_progress(relation, progress, after) %}
    {%- do adapter.afterimage.write_progress(
        afterimage._progress_relation(), relation, afterimage._progress_name(relation), progress, after
    ) -%}
{% endmacro %}


{#
    Resets the progress of a history and of its downstream marts, so that the marts are rebuilt after it: under other settings
    the same batches may give history other rows. Called before the build: a killed run has then reset too much, not too little.
#}
{% macro _reset_progress_from(history) %}
    {%- set names = [afterimage._progress_name(history)] -%}
    {%- for node in graph.nodes.values() -%}
        {%- if node.config.materialized in afterimage._mart_materializations() and model.unique_id in node.depends_on.nodes -%}
            {%- do names.append(afterimage._progress_name(afterimage._relation_of(node))) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do adapter.afterimage.reset_progress(afterimage._progress_relation(), names) -%}
{% endmacro %}
