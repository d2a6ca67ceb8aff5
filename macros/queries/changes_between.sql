{#
    A subquery of what differs between two moments of a history: one row per key that was inserted, deleted or has other
    values, whatever happened in between.

        select * from {{ changes_between(ref('customers_history'), '2026-03-02', '2026-03-03') }}

    Arguments:
      history     ref('<table>_history')
      earlier_at  the first moment, as in `as_of`: a UTC timestamp, an SQL expression, or a change_seq
      later_at    the second moment
      columns     columns to compare; default: the tracked columns
#}
{% macro changes_between(history, earlier_at, later_at, columns=none) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('changes_between', 'history', history) -%}
    {%- set settings = afterimage._settings_of_relation(history) -%}
    {%- set found = afterimage._history_columns(history, settings) -%}
    {%- if columns is not none -%}
        {%- do afterimage._check_columns('changes_between', history, 'columns', columns, found) -%}
    {%- endif -%}
    {%- set compared = columns if columns is not none else afterimage._tracked_columns(found.data, settings) -%}
    {%- set earlier, later = afterimage.as_of(history, earlier_at), afterimage.as_of(history, later_at) -%}
    {{ return(afterimage._changes_between_sql(earlier, later, settings.key, afterimage._without(compared, settings.key))) }}
{% endmacro %}


{# The statement. #}
{% macro _changes_between_sql(earlier, later, key, columns) -%}
{%- set is_new, is_gone = 'earlier.' ~ afterimage._quoted(key[0]) ~ ' is null', 'later.' ~ afterimage._quoted(key[0]) ~ ' is null' -%}
(
    select
        {%- for name in key %}
        coalesce(later.{{ afterimage._quoted(name) }}, earlier.{{ afterimage._quoted(name) }}) as {{ afterimage._quoted(name) }},
        {%- endfor %}
        case
            when {{ is_new }} then 'inserted'
            when {{ is_gone }} then 'deleted'
            else 'changed'
        end as net_change,
        case
            when earlier.{{ afterimage._quoted(key[0]) }} = later.{{ afterimage._quoted(key[0]) }} then substring(concat(
                {%- for name in columns %}
                case
                    when earlier.{{ afterimage._quoted(name) }} is distinct from later.{{ afterimage._quoted(name) }}
                        then {{ afterimage._text(', ' ~ name) }}
                    else ''
                end,
                {%- endfor %}
                '', ''
            ), 3)
        end as changed_columns
        {%- for name in columns %},
        earlier.{{ afterimage._quoted(name) }} as {{ afterimage._quoted('old_' ~ name) }},
        later.{{ afterimage._quoted(name) }} as {{ afterimage._quoted('new_' ~ name) }}
        {%- endfor %}
    from {{ earlier | indent }} as earlier
    full join {{ later | indent }} as later
        on {{ afterimage._equal(key, 'earlier', 'later', '=', indent=12) }}
    where
        {{ is_new }}
        or {{ is_gone }}
        {%- for name in columns %}
        or earlier.{{ afterimage._quoted(name) }} is distinct from later.{{ afterimage._quoted(name) }}
        {%- endfor %}
)
{%- endmacro %}
