{#
    The body of a `<table>_history` model: one row per version of a row, [valid_from, valid_to).

    This SQL, which dbt shows as the compiled code and which dbt unit tests run, builds the whole history from the whole
    change log. No run executes it as it stands. A first run, or --full-refresh, also builds the whole history, but takes
    the columns to forward-fill from the log where this SQL takes them from the settings, and stops at the last batch that
    it will record in the progress table: `_mart_select`. Later runs apply new changes only: `_history_batch`.

    Arguments:
      changes  the change log, ref('<table>_changes')
#}
{% macro history(changes) %}
    {{- config(materialized='change_mart', mart='history', partition_by=['is_current']) -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set table = afterimage._history_table(changes) -%}
    {%- set given = afterimage._history_given(table, afterimage._carried_by_settings(table)) -%}
    {{ return(afterimage._history_from_log(given, table)) }}
{% endmacro %}


{# What the history step needs to know of a table: its log, as a relation and as it stands after FROM, settings, columns. #}
{% macro _history_table(changes) %}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- if not settings.key -%}
        {{ exceptions.raise_compiler_error(
            "`history`: the source table of " ~ model.name ~ " declares no `key`. History needs one; without a key a table"
            ~ " has a change log and field changes only. Add `key: [...]` to its `meta.afterimage`."
        ) }}
    {%- endif -%}
    {%- set columns = afterimage._data_columns(changes, settings) -%}
    {%- set names = columns | map(attribute='name') | list -%}
    {%- for name in names if name | lower in afterimage._history_own_columns() + [model.alias ~ "_id"] -%}
        {{ exceptions.raise_compiler_error(
            "`history`: the source table of " ~ model.name ~ " has a column `" ~ name ~ "`, which is a name that history adds."
            ~ " Rename the column in a view over the raw table, and declare that view as the source."
        ) }}
    {%- endfor -%}
    {%- set logged = afterimage._raw_columns(changes) | map(attribute='name') | list -%}
    {%- for name in settings.get('history_metadata', []) if logged and name not in logged -%}
        {{ exceptions.raise_compiler_error(
            "`history`: `history_metadata` of source table " ~ settings.source_table ~ " names `" ~ name ~ "`, and its change log "
            ~ changes ~ " has no such column. Fix: let the staging model yield the column and run the change log first, or take"
            ~ " the name out of `history_metadata`."
        ) }}
    {%- endfor -%}
    {{ return({
        'log': changes,
        'changes': changes ~ ' as changes',
        'settings': settings,
        'columns': names,
        'tracked': afterimage._tracked_columns(names, settings),
    }) }}
{% endmacro %}


{# Arguments of `_versions` for the whole log. #}
{% macro _history_given(table, carried) %}
    {{ return({
        'changes': table.changes,
        'where': none,
        'affected_keys': none,
        'seeds': none,
        'stored': none,
        'columns': table.columns,
        'key': table.settings.key,
        'metadata': table.settings.get('history_metadata', []),
        'tracked': table.tracked,
        'carried': carried,
        'base': table.settings.base,
        'has_ends': true,
        'scopes': [],
        'has_moves': true,
        'has_incomplete_key_changes': true,
        'recorded_at': none,
        'has_few_keys': false,
        'replays': false,
        'from_seq': none,
    }) }}
{% endmacro %}


{# Columns that a change may not know, as far as the settings tell. #}
{% macro _carried_by_settings(table) %}
    {%- set carried = [] -%}
    {%- set named = table.settings.forward_filled_columns -%}
    {%- for name in table.columns if name not in table.settings.key and (named is none or name in named) -%}
        {%- do carried.append(name) -%}
    {%- endfor -%}
    {{ return(carried) }}
{% endmacro %}


{# Columns that history adds to the data; a table's own columns may not have these names. #}
{% macro _history_own_columns() %}
    {{ return([
        'valid_from', 'valid_to', 'valid_from_seq', 'valid_to_seq', 'is_current', 'opened_by', 'closed_by',
        'recorded_at', 'transaction_id', 'changed_columns', 'unknown_columns',
    ]) }}
{% endmacro %}


{# The columns of a history table, in order; what every reader filters by stands first. #}
{% macro _history_columns(table) %}
    {{ return(
        [model.alias ~ '_id'] + table.settings.key + afterimage._history_own_columns()
        + table.settings.get('history_metadata', []) + afterimage._without(table.columns, table.settings.key)
    ) }}
{% endmacro %}


{# The whole history from the change log. #}
{% macro _history_from_log(given, table) -%}
{%- set names = afterimage._history_columns(table) -%}
{{ afterimage._versions(given) }}

select
    _version_id as {{ names[0] }},
    {%- for name in names[1:] %}
    {%- if name == 'recorded_at' %}
    {{ "timestamp '" ~ given.recorded_at ~ "'" if given.recorded_at else '(select max(changes.recorded_at) from changes)' }} as recorded_at
    {%- else %}
    {{ afterimage._quoted(name) }}
    {%- endif %}{{ ',' if not loop.last }}
    {%- endfor %}
from versions
{%- endmacro %}
