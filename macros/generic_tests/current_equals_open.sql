{#
    Generic test of a current table: it holds the open rows of its history, column by column, and nothing else.
    With the setting `keep_deleted`: the last version of every key, unless a key change closed it.

    Rows are counted: a duplicate is a finding too.

    Arguments:
      history  ref('<table>_history')
#}
{% test current_equals_open(model, history) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_relation_argument('current_equals_open', 'history', history) -%}
    {%- do afterimage._check_whole_table('current_equals_open', model) -%}
    {%- set columns = afterimage._raw_columns(model) | map(attribute='name') | list -%}
    {%- if not columns -%}
        {{ exceptions.raise_compiler_error(
            "`current_equals_open` on " ~ afterimage._tested_node().name ~ ": table " ~ model ~ " does not exist."
            ~ " Fix: dbt run --select " ~ afterimage._tested_node().name
        ) }}
    {%- endif -%}
    {%- set keeps_deleted = afterimage._tested_settings().keep_deleted -%}
    {%- set state = 'last' if keeps_deleted else 'open' -%}
with

{% if keeps_deleted -%}
{{ afterimage._last_versions("select *\n    from " ~ history, afterimage._tested_key('current_equals_open', none)) }},

open_rows as (
    select
        {{ afterimage._current_values(columns) | indent }}
    from last_versions
    where
        _place_from_end = 1
        and (is_current or closed_by <> 'K')
),
{%- else -%}
open_rows as (
    select
        {{ afterimage._listed(columns) }}
    from {{ history }}
    where is_current
),
{%- endif %}

current_rows as (
    select
        {{ afterimage._listed(columns) }}
    from {{ model }}
),

missing as (
    select *
    from open_rows
    except all
    select *
    from current_rows
),

surplus as (
    select *
    from current_rows
    except all
    select *
    from open_rows
)

select
    '{{ state }} in history, but not in current' as what_is_wrong,
    {{ afterimage._listed(columns, indent=4) }}
from missing
union all
select
    'in current, but not {{ state }} in history' as what_is_wrong,
    {{ afterimage._listed(columns, indent=4) }}
from surplus
{% endtest %}
