{# The table in which every model notes what it has applied; one per target schema. #}
{% macro _progress_relation() %}
    {{ return(api.Relation.create(schema=target.schema, identifier='afterimage_progress', type='table')) }}
{% endmacro %}


{# The table of what `afterimage erase` removed; beside the one of progress, and only there once something was erased. #}
{% macro _erasures_relation() %}
    {{ return(api.Relation.create(schema=target.schema, identifier='afterimage_erasures', type='table')) }}
{% endmacro %}


{#
    The name of a table in it: with its schema where that is not the target's, for projects with other schemas of their own may
    share a target.
#}
{% macro _progress_name(relation) %}
    {{ return(relation.identifier if relation.schema == target.schema else relation.schema ~ '.' ~ relation.identifier) }}
{% endmacro %}


{# The table that a node of dbt's graph is built as. #}
{% macro _relation_of(node) %}
    {{ return(api.Relation.create(schema=node.schema, identifier=node.alias, type='table')) }}
{% endmacro %}


{% macro _progress_names(relations) %}
    {%- set names = [] -%}
    {%- for relation in relations -%}
        {%- do names.append(afterimage._progress_name(relation)) -%}
    {%- endfor -%}
    {{ return(names) }}
{% endmacro %}


{# Creates it on the first run. Afterwards it commits nothing, but for many files that small batches have left. #}
{% macro _create_progress() %}
    {%- do run_query("create schema if not exists " ~ target.schema) -%}
    {%- set statement -%}
        create table if not exists {{ afterimage._progress_relation() }} (
            model string comment 'the table that was published to, with its schema where that is not the schema of the target',
            recorded_at timestamp comment 'the last batch of the change log that it has applied',
            change_seq string comment 'greatest change_seq that it has applied',
            changed_at timestamp comment 'greatest changed_at that it has applied',
            path string comment 'how it did so: incremental, replay or rebuild; NULL for change logs',
            arrival string comment 'greatest mark of arrival that a change log has read; NULL where there are none',
            raw_version string comment 'of a change log: JSON with the versions of the raw tables that it has read; of a landing: topic ids'
        )
        {{ adapter.afterimage.table_options() }}
        comment 'One row per publication of a model: what it had applied by then'
    {%- endset -%}
    {%- do run_query(statement) -%}
    {#- each model of a run adds a file, and each run reads them all -#}
    {%- do adapter.afterimage.compact_if_needed(afterimage._progress_relation()) -%}
{% endmacro %}


{# What a table has applied: {recorded_at, change_seq, changed_at}, each none before its first publication. #}
{% macro _read_progress(relation) %}
    {%- set name = afterimage._progress_name(relation) -%}
    {{ return(afterimage._progress_since(name, [name])[name]) }}
{% endmacro %}


{# The same of a mart and its inputs, by relation name. #}
{% macro _progress_by(mart, inputs) %}
    {{ return(afterimage._progress_since(afterimage._progress_name(mart), afterimage._progress_names([mart] + inputs))) }}
{% endmacro %}


{# What they had applied when the command began, and have not changed since: {recorded_at}, none where that is not known. #}
{% macro _progress_at_start(mart, inputs) %}
    {{ return(adapter.afterimage.cached_progress(
        afterimage._progress_relation(), afterimage._progress_names([mart] + inputs)
    )) }}
{% endmacro %}


{#
    What models have applied, in one query; also `paths`, the distinct ones of what each has published since the reader's last
    batch. The last row as a whole and not the greatest of each column: a log that was rebuilt may end at another place.
    `partition by 1` is all rows; Spark warns of a window without it.
#}
{% macro _progress_since(reader, model_names) %}
    {%- set noted = {} -%}
    {%- for name in model_names -%}
        {%- do noted.update({name: {'recorded_at': none, 'change_seq': none, 'changed_at': none, 'paths': []}}) -%}
    {%- endfor -%}
    {%- for row in run_query(
        "select model, cast(last.recorded_at as string), last.change_seq, cast(last.changed_at as string), to_json(paths)"
        ~ " from (select model, max(struct(recorded_at, change_seq, changed_at)) as last,"
        ~ " collect_set(if(coalesce(recorded_at > applied, true), path, null)) as paths"
        ~ " from (select *, max(if(model = '" ~ reader ~ "', recorded_at, null)) over (partition by 1) as applied from "
        ~ afterimage._progress_relation() ~ " where model in ('" ~ noted | join("', '") ~ "')) as publications"
        ~ " group by model) as last_rows"
    ).rows -%}
        {%- do noted.update({row[0]: {
            'recorded_at': row[1], 'change_seq': row[2], 'changed_at': row[3], 'paths': fromjson(row[4]),
        }}) -%}
    {%- endfor -%}
    {{ return(noted) }}
{% endmacro %}


{# Condition: recorded in a batch after this one; true when there is none. #}
{% macro _recorded_after(recorded_at) %}
    {{- return("recorded_at > timestamp '" ~ recorded_at ~ "'" if recorded_at else 'true') -}}
{% endmacro %}


{# For FROM: a change log as it was when this was its last batch. Another run may append the next one at any moment. #}
{% macro _recorded_up_to(log, recorded_at) %}
    {%- set derived -%}
(
    select *
    from {{ log }}
    where recorded_at <= timestamp '{{ recorded_at }}'
) as changes
    {%- endset -%}
    {{ return(derived) }}
{% endmacro %}


{# Appends what has just been published to a table. #}
{% macro _write_progress(relation, progress) %}
    {%- set progress_name = afterimage._progress_name(relation) -%}
    {%- set texts = [] -%}
    {%- for name in ('recorded_at', 'change_seq', 'changed_at', 'path') -%}
        {%- do texts.append("'" ~ progress[name] ~ "'" if progress[name] is not none else 'null') -%}
    {%- endfor -%}
    {%- do run_query(
        "insert into " ~ afterimage._progress_relation() ~ " values ('" ~ progress_name ~ "', cast(" ~ texts[0] ~ " as timestamp), "
        ~ texts[1] ~ ", cast(" ~ texts[2] ~ " as timestamp), " ~ texts[3] ~ ", null, null)"
    ) -%}
    {%- do adapter.afterimage.drop_cached_progress(progress_name) -%}
{% endmacro %}


{#
    Forgets what the marts made from this history have noted, so that they are rebuilt after it: other settings may have
    given it other rows of the very batches that they have applied. Before it is built: a killed run forgets too much.
#}
{% macro _reset_downstream_progress() %}
    {%- set names = [] -%}
    {%- for node in graph.nodes.values() -%}
        {%- if node.config.materialized in afterimage._mart_materializations() and model.unique_id in node.depends_on.nodes -%}
            {%- do names.append(afterimage._progress_name(afterimage._relation_of(node))) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do adapter.afterimage.reset_progress(afterimage._progress_relation(), names) -%}
{% endmacro %}
