{#
    What a run does to an existing field-changes table, for the materialization to write; none when nothing is new.
    From before images: the rows of new batches are added. From history: those of new versions are added, or, when history took its
    replay path, the keys that it wrote are compared again, since a late change falsifies old values.
#}
{% macro _field_changes_batch(target_relation, changes, history, progress, state) %}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- if settings.before_images -%}
        {{ return(afterimage._field_changes_batch_by_images(target_relation, changes, settings, progress, state)) }}
    {%- endif -%}
    {{ return(afterimage._field_changes_batch_by_versions(target_relation, changes, history, settings, progress, state)) }}
{% endmacro %}


{% macro _field_changes_batch_by_images(target_relation, changes, settings, progress, state) %}
    {%- set applied = progress[afterimage._progress_name(target_relation)].recorded_at -%}
    {%- set publications = progress[afterimage._progress_name(changes)] -%}
    {%- set is_as_published = afterimage._is_as_published(target_relation, changes, progress, state) -%}
    {%- if is_as_published -%}
        {%- set is_new = afterimage._recorded_after(applied, publications.batches) -%}
        {%- set found = {
            'changes': publications.profile.changes if publications.profile else none, 'recorded_at': publications.recorded_at,
        } -%}
        {%- set published = none -%}
    {%- else -%}
        {%- set is_new = afterimage._recorded_after(applied) -%}
        {%- set answers = afterimage._scalar_answers({
            'found': afterimage._batch_query(changes, is_new),
            'published': afterimage._newest_batch_query(target_relation, is_new),
        }) -%}
        {%- set found = fromjson(answers.found) -%}
        {#- a run killed before its progress row was written has published already; a batch is there in full or not at all -#}
        {%- set published = answers.published -%}
    {%- endif -%}
    {%- if found.changes == 0 -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set columns = afterimage._data_columns(changes, settings) -%}
    {{ return({
        'path': 'incremental',
        'why': 'changes of new batches only',
        'changes': found.changes,
        'applied': {'recorded_at': found.recorded_at, 'change_seq': none, 'changed_at': none, 'path': 'incremental'},
        'after': published or applied,
        'base_version': state if is_as_published else none,
        'rows': afterimage._field_changes_by_images(
            changes, settings, columns, afterimage._recorded_after(published) if published else is_new
        ),
    }) }}
{% endmacro %}


{% macro _field_changes_batch_by_versions(target_relation, changes, history, settings, progress, state) %}
    {%- set applied = progress[afterimage._progress_name(target_relation)] -%}
    {%- set publications = progress[afterimage._progress_name(history)] -%}
    {%- set is_new = afterimage._recorded_after(applied.recorded_at) -%}
    {%- set answers = afterimage._scalar_answers({
        'found': afterimage._batch_query(history, is_new),
        'published': afterimage._newest_batch_query(target_relation, is_new),
    }) -%}
    {%- set written = fromjson(answers.found).changes -%}
    {%- if not written and not publications.paths -%}
        {{ return(none) }}
    {%- elif not written and publications.paths == ['incremental'] -%}
        {{ return({'applied': afterimage._applied_of_history(publications)}) }}
    {%- endif -%}
    {%- set columns = afterimage._data_columns(changes, settings) -%}
    {%- set why = none -%}
    {%- if not applied.change_seq -%}
        {%- set why = 'the table is ahead of its progress' if answers.published else 'no change was applied before' -%}
    {%- elif answers.published -%}
        {%- set why = 'a run was cut off before its progress was recorded' -%}
    {%- elif publications.paths != ['incremental'] -%}
        {%- set why = 'history did not take its incremental path' -%}
    {%- endif -%}
    {%- if why -%}
        {%- set batch = {
            'source': afterimage._field_changes_difference(target_relation, history, settings, columns, is_new),
            'identity': settings.key + ['change_seq', 'column_name'],
            'where': '',
            'after': state,
        } -%}
    {%- else -%}
        {%- set batch = {
            'after': applied.recorded_at,
            'rows': afterimage._field_changes_by_versions(
                "select *\n    from " ~ history ~ "\n    where " ~ is_new, settings, columns, applied.change_seq
            ),
        } -%}
    {%- endif -%}
    {%- do batch.update({
        'path': 'replay' if why else 'incremental',
        'why': why or 'versions of new changes only',
        'changes': written,
        'applied': afterimage._applied_of_history(publications, 'replay' if why else 'incremental'),
    }) -%}
    {{ return(batch) }}
{% endmacro %}


{#
    The progress of a mart that has applied all that history has published. It is recorded even if there was nothing to write, or
    `status` would show the mart as behind.
#}
{% macro _applied_of_history(publications, path='incremental') %}
    {{ return({
        'recorded_at': publications.recorded_at,
        'change_seq': publications.change_seq,
        'changed_at': none,
        'path': path,
    }) }}
{% endmacro %}


{# The differences between the stored rows and those of all versions, for the keys whose versions history wrote or removed. #}
{% macro _field_changes_difference(target_relation, history, settings, columns, is_new) -%}
{%- set key = settings.key -%}
{%- set identity = key + ['change_seq', 'column_name'] -%}
{%- set values = afterimage._without(afterimage._field_changes_columns(key), identity + ['recorded_at']) -%}
{%- set rows = "select history_rows.*\n    from " ~ history ~ " as history_rows\n    left semi join affected_keys"
    ~ "\n        on " ~ afterimage._equal(key, 'history_rows', 'affected_keys', '=') -%}
with

affected_keys as (
    {{ afterimage._keys_written_by_history(history, key, is_new, target_relation, 'change_seq') | indent }}
),

rebuilt as (
    {{ afterimage._field_changes_by_versions(rows, settings, columns) | indent }}
),

stored as (
    select stored_rows.*
    from {{ target_relation }} as stored_rows
    left semi join affected_keys
        on {{ afterimage._equal(key, 'stored_rows', 'affected_keys', '=') }}
)

select
    {%- for name in identity %}
    coalesce(rebuilt.{{ afterimage._quoted(name) }}, stored.{{ afterimage._quoted(name) }}) as {{ afterimage._quoted(name) }},
    {%- endfor %}
    {{ afterimage._listed(values + ['recorded_at'], 'rebuilt.', indent=4) }},
    case
        when rebuilt.change_seq is null then 'delete'
        when stored.change_seq is null then 'insert'
        else 'update'
    end as _write_action
from rebuilt
full outer join stored
    on {{ afterimage._equal(identity, 'rebuilt', 'stored', '=') }}
where
    rebuilt.change_seq is null
    or stored.change_seq is null
    or not (
        struct({{ afterimage._listed(values, 'rebuilt.') | replace('\n        ', ' ') }})
        <=> struct({{ afterimage._listed(values, 'stored.') | replace('\n        ', ' ') }})
    )
{%- endmacro %}


{#
    A select of the keys whose versions history has written or removed. A removed version is found by a row of the mart whose
    position, in its column `place`, is that of no version of history.
#}
{% macro _keys_written_by_history(history, key, is_new, mart, place) -%}
{%- set gap = '\n    ' if key | length > 1 else ' ' -%}
select{{ gap }}{{ afterimage._listed(key, indent=4) }}
from {{ history }}
where {{ is_new }}
union
-- of a version that history has removed
select{{ gap }}{{ afterimage._listed(key, 'mart_rows.', indent=4) }}
from {{ mart }} as mart_rows
left anti join {{ history }} as history_rows
    on
        {{ afterimage._equal(key, 'mart_rows', 'history_rows', '=', indent=8) }}
        and mart_rows.{{ place }} = history_rows.valid_from_seq
{%- endmacro %}
