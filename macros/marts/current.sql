{#
    The body of a `<table>_current` model: one row per live key, the open rows of history and nothing else.
    With the setting `keep_deleted` deleted keys stay, see `_current_with_deleted.sql`.

    Arguments:
      history       ref('<table>_history')
      materialized  `table`, or `view`: a run writes nothing, and each reader filters the history
#}
{% macro current(history, materialized='table') %}
    {%- if materialized not in ('table', 'view') -%}
        {{ exceptions.raise_compiler_error(
            "`current` in " ~ model.name ~ ": `materialized` is " ~ materialized | tojson ~ ". Allowed: 'table', 'view'. Fix: correct it."
        ) }}
    {%- endif -%}
    {{- config(materialized='view' if materialized == 'view' else 'current_state') -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set settings = afterimage._settings_of(model) -%}
    {{ return(afterimage._current_rows(history, settings, afterimage._current_columns(history, settings))) }}
{% endmacro %}


{# The whole table, from its history. #}
{% macro _current_rows(history, settings, columns) %}
    {%- if settings.keep_deleted -%}
        {{ return(afterimage._current_rows_with_deleted(history, settings.key, columns)) }}
    {%- endif -%}
    {%- set statement -%}
select
    {{ afterimage._listed(columns, indent=4) }}
from {{ history }}
where is_current
    {%- endset -%}
    {{ return(statement) }}
{% endmacro %}


{# Columns of a current table, from those of its history, which may be given. #}
{% macro _current_columns(history, settings, names=none) %}
    {%- set left_out = settings.key + [history.identifier ~ '_id'] + afterimage._history_own_columns() + settings.get('optional_columns', {}) | list -%}
    {%- set names = names if names is not none else afterimage._raw_columns(history) | map(attribute='name') | list -%}
    {%- set data = afterimage._without(names, left_out) -%}
    {%- if not data -%}
        {%- set data = afterimage._without(afterimage._data_columns(history, settings) | map(attribute='name') | list, left_out) -%}
    {%- endif -%}
    {%- for name in settings.key + data if name | lower in afterimage._deletion_columns(settings) -%}
        {{ exceptions.raise_compiler_error(
            "`current`: the source table of " ~ model.name ~ " has a column `" ~ name ~ "`, a name that `keep_deleted: true`"
            ~ " adds. Fix: leave the setting out, or rename the column in a view over the raw table, and declare that view"
            ~ " as the source."
        ) }}
    {%- endfor -%}
    {{ return(settings.key + afterimage._current_own_columns(settings) + data) }}
{% endmacro %}


{# Columns of a current table besides the data, from history. #}
{% macro _current_own_columns(settings) %}
    {{ return(['valid_from', 'valid_from_seq'] + afterimage._deletion_columns(settings) + ['transaction_id', 'recorded_at']) }}
{% endmacro %}


{#
    What a run does to an existing current table: the keys that a batch affected take their open row,
    or go when they have none. Applying a batch again writes the same rows.

    incremental  history added versions and closed open ones: the rows that it wrote suffice
    replay       history may have removed versions, even the last one of a key: all keys are compared
#}
{% macro _current_batch(target_relation, history, progress, state) %}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- set publications = progress[afterimage._progress_name(history)] -%}
    {%- set applied = progress[afterimage._progress_name(target_relation)].recorded_at -%}
    {%- if afterimage._is_as_published(target_relation, history, progress, state) -%}
        {%- set is_new = afterimage._recorded_after(applied, publications.batches) -%}
        {%- set found = {'changes': none, 'recorded_at': publications.recorded_at} -%}
    {%- else -%}
        {%- set is_new = afterimage._recorded_after(applied) -%}
        {%- set found = fromjson(afterimage._scalar_answers({'found': afterimage._batch_query(history, is_new)}).found) -%}
    {%- endif -%}
    {%- if found.changes == 0 and not publications.paths -%}
        {{ return(none) }}
    {%- elif found.changes == 0 and publications.paths == ['incremental'] -%}
        {{ return({'applied': afterimage._applied_of_history(publications)}) }}
    {%- endif -%}
    {%- set key = settings.key -%}
    {%- set columns = afterimage._current_columns(history, settings) -%}
    {%- set path, why = 'incremental', 'keys of the batch only' -%}
    {%- if publications.paths != ['incremental'] -%}
        {%- set path, why = 'replay', 'history did not take its incremental path' -%}
    {%- elif found.recorded_at and found.recorded_at > publications.recorded_at -%}
        {%- set path, why = 'replay', 'history has rows without a progress row, another run is at work or was cut off' -%}
    {%- endif -%}
    {%- if settings.keep_deleted -%}
        {%- set source = afterimage._current_source_with_deleted(history, target_relation, key, columns, is_new, path) -%}
    {%- else -%}
        {%- set source = afterimage._current_source(history, target_relation, key, columns, is_new, path) -%}
    {%- endif -%}
    {{ return({
        'path': path,
        'why': why,
        'changes': found.changes,
        'applied': {
            'recorded_at': [found.recorded_at, publications.recorded_at] | select | max,
            'change_seq': none,
            'changed_at': none,
            'path': path,
        },
        'source': source,
        'identity': key,
        'where': '',
        'after': state,
    }) }}
{% endmacro %}


{# The open rows of the keys that history wrote, and keys that have none. #}
{% macro _current_source(history, target_relation, key, columns, is_new, path) -%}
with

written_versions as (
    select *
    from {{ history }}
    where {{ is_new }}
),

opened as (
    select
        {{ afterimage._listed(columns) }},
        'update' as _write_action
    from written_versions
    where is_current
),

-- may have been closed
candidates as (
    {%- if path == 'incremental' %}
    select distinct{{ '\n        ' if key | length > 1 else ' ' }}{{ afterimage._listed(key) }}
    from written_versions
    where not is_current
    {%- else %}
    select{{ '\n        ' if key | length > 1 else ' ' }}{{ afterimage._listed(key) }}
    from {{ target_relation }}
    {%- endif %}
),

still_open as (
    {%- if path == 'incremental' %}
    -- a version that followed a closed one was written with it, or later
    select *
    from opened
    {%- else %}
    select *
    from {{ history }}
    where is_current
    {%- endif %}
)

select *
from opened
union all
select
    {%- for name in columns %}
    {{ 'candidates.' ~ afterimage._quoted(name) if name in key else 'null as ' ~ afterimage._quoted(name) }},
    {%- endfor %}
    'delete' as _write_action
from candidates
left anti join still_open
    on {{ afterimage._equal(key, 'candidates', 'still_open', '=') }}
{%- endmacro %}
