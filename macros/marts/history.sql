{#
    The body of a `<table>_history` model: one row per version of a row, [valid_from, valid_to).

    The model's own SQL builds the whole history from the change log; that is what a first run and --full-refresh
    run, what dbt docs shows, and what dbt unit tests test. Later runs apply only new changes: the materialization
    `change_mart` asks `_history_batch` for them.

    Arguments:
      changes  the change log, ref('<table>_changes')
#}
{% macro history(changes) %}
    {{- config(materialized='change_mart', mart='history', partition_by=['is_current']) -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set table = _history_table(changes) -%}
    {%- set given = _history_given(table, _carried_by_settings(table)) -%}
    {{ return(_history_from_log(given, table)) }}
{% endmacro %}


{# What the history step needs to know of a table: its settings and columns, and the prefix of its names. #}
{% macro _history_table(changes) %}
    {%- set settings = _settings_of(model) -%}
    {%- if not settings.key -%}
        {{ exceptions.raise_compiler_error(
            "`history`: the source table of " ~ model.name ~ " declares no `key`. History needs one; without a key a table"
            ~ " has a change log and field changes only. Add `key: [...]` to its `meta.afterimage`."
        ) }}
    {%- endif -%}
    {%- set columns = _data_columns(changes, settings) -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {{ return({
        'changes': changes,
        'settings': settings,
        'columns': names,
        'tracked': _tracked_columns(names, settings),
    }) }}
{% endmacro %}


{# Arguments of `_versions` for the whole log. #}
{% macro _history_given(table, carried) %}
    {{ return({
        'changes': table.changes,
        'where': none,
        'keys': none,
        'seeds': none,
        'columns': table.columns,
        'key': table.settings.key,
        'tracked': table.tracked,
        'carried': carried,
        'base': table.settings.base,
        'has_closers': true,
        'has_moves': true,
    }) }}
{% endmacro %}


{# Columns that a change may not know, as far as the settings tell. #}
{% macro _carried_by_settings(table) %}
    {%- set carried = [] -%}
    {%- for name in table.columns if name in table.settings.lob_columns -%}
        {%- do carried.append(name) -%}
    {%- endfor -%}
    {{ return(carried) }}
{% endmacro %}


{# The columns of a history table, in order; what every reader filters by stands first. #}
{% macro _history_columns(table) %}
    {{ return(
        [model.alias ~ '_id'] + table.settings.key + [
            'valid_from', 'valid_to', 'valid_from_seq', 'valid_to_seq', 'is_current', 'opened_by', 'closed_by',
            'recorded_at', 'transaction_id', 'changed_columns', 'unknown_columns',
        ] + _without(table.columns, table.settings.key)
    ) }}
{% endmacro %}


{# The whole history from the change log. #}
{% macro _history_from_log(given, table) -%}
with

{{ _versions(given) }},

batches as (
    select max(recorded_at) as recorded_at
    from changes
),

final as (
    select
        versions.history_id as {{ model.alias }}_id,
        {{ _listed(_history_columns(table)[1:] | reject('equalto', 'recorded_at') | list, 'versions.') }},
        batches.recorded_at
    from versions
    cross join batches
)

select
    {{ _listed(_history_columns(table), indent=4) }}
from final
{%- endmacro %}
