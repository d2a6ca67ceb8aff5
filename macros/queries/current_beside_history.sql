{#
    A subquery of all versions of a history, each with what its key has now in some columns (Kimball: type 6).

        select * from {{ current_beside_history(ref('customers_history'), columns=['city']) }}

    Arguments:
      history  ref('<table>_history')
      columns  columns whose current values to add
      prefix   of their names; default: current_
#}
{% macro current_beside_history(history, columns, prefix='current_') %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('current_beside_history', 'history', history) -%}
    {%- set key = afterimage._settings_of_relation(history).key -%}
    {%- do afterimage._check_columns(
        'current_beside_history', history, 'columns', columns, afterimage._history_columns(history, {'key': key})
    ) -%}
    {{ return(afterimage._current_beside_history_sql(history, key, columns, prefix)) }}
{% endmacro %}


{# The statement. #}
{% macro _current_beside_history_sql(history, key, columns, prefix) -%}
(
    select
        versions.*
        {%- for name in columns %},
        open_versions.{{ afterimage._quoted(name) }} as {{ afterimage._quoted(prefix ~ name) }}
        {%- endfor %}
    from {{ history }} as versions
    left join {{ history }} as open_versions
        on
            {{ afterimage._equal(key, 'versions', 'open_versions', '=', indent=12) }}
            and open_versions.is_current
)
{%- endmacro %}
