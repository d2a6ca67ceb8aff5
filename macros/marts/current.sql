{#
    The body of a `<table>_current` model: one row per live key, the open rows of history and nothing else.

    Arguments:
      history  ref('<table>_history')
#}
{% macro current(history) %}
    {{- config(materialized='change_mart', mart='current') -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set columns = _current_columns(history) -%}
    {%- set statement -%}
select
    {{ _listed(columns, indent=4) }}
from {{ history }}
where is_current
    {%- endset -%}
    {{ return(statement) }}
{% endmacro %}


{# Columns of a current table, from those of its history. #}
{% macro _current_columns(history) %}
    {%- set settings = _settings_of(model) -%}
    {%- set left_out = settings.key + [history.identifier ~ '_id'] + _history_own_columns() -%}
    {%- set data = _without(_raw_columns(history) | map(attribute='name') | list, left_out) -%}
    {%- if not data -%}
        {%- set data = _without(_data_columns(history, settings) | map(attribute='name') | list, left_out) -%}
    {%- endif -%}
    {{ return(settings.key + _current_own_columns() + data) }}
{% endmacro %}


{# Columns of a current table besides the data, from history. #}
{% macro _current_own_columns() %}
    {{ return(['valid_from', 'valid_from_seq', 'transaction_id', 'recorded_at']) }}
{% endmacro %}


{#
    What a run does to an existing current table: the keys whose history a batch touched take their open row,
    or go when they have none. Applying a batch again writes the same rows.
#}
{% macro _current_batch(target_relation, history) %}
    {%- set is_new = _recorded_after(_read_progress(target_relation.identifier).recorded_at) -%}
    {%- set found = run_query(
        "select count(*), cast(max(recorded_at) as string) from " ~ history ~ " where " ~ is_new
    ).rows[0] -%}
    {%- if not found[0] | int -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set key = _settings_of(model).key -%}
    {%- set columns = _current_columns(history) -%}
    {%- set statement -%}
merge into {{ target_relation }} as target
using (
    with

    touched as (
        select *
        from {{ history }}
        where {{ is_new }}
    ),

    opened as (
        select
            {{ _listed(columns, indent=12) }},
            false as is_gone
        from touched
        where is_current
    ),

    -- closed in the batch, and open nowhere in history
    gone as (
        select distinct{{ '\n            ' if key | length > 1 else ' ' }}{{ _listed(key, indent=12) }}
        from touched
        where not is_current
    ),

    still_open as (
        select *
        from {{ history }}
        where is_current
    )

    select *
    from opened
    union all
    select
        {%- for name in columns %}
        {{ 'gone.' ~ _quoted(name) if name in key else 'null as ' ~ _quoted(name) }},
        {%- endfor %}
        true as is_gone
    from gone
    left anti join still_open
        on {{ _equal(key, 'gone', 'still_open', '=') }}
) as source
    on {{ _equal(key, 'target', 'source', '=') }}
when matched and source.is_gone then delete
when matched then
    update set
        {%- for name in columns if name not in key %}
        target.{{ _quoted(name) }} = source.{{ _quoted(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
when not matched and not source.is_gone then
    insert ({{ _listed(columns) | replace('\n        ', ' ') }})
    values ({{ _listed(columns, 'source.') | replace('\n        ', ' ') }})
    {%- endset -%}
    {{ return({
        'path': 'narrow',
        'why': 'keys of the batch only',
        'changes': found[0] | int,
        'applied': {'recorded_at': found[1], 'change_seq': none, 'changed_at': none, 'path': 'narrow'},
        'statement': statement,
    }) }}
{% endmacro %}
