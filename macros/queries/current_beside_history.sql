{#
    A subquery of all versions of a history, each with what its key has now in some columns (Kimball: type 6), or instead of
    what it had in them (type 1 columns in a type 2 table).

        select * from {{ current_beside_history(ref('customers_history'), columns=['city']) }}
        select * from {{ current_beside_history(ref('customers_history'), columns=['phone'], replace=true) }}

    Arguments:
      history  ref('<table>_history')
      columns  columns whose current values to add
      prefix   of their names; default: current_
      replace  true gives them in place of the versions' own values: those of the newest version, also of a deleted key
#}
{% macro current_beside_history(history, columns, prefix='current_', replace=false) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('current_beside_history', 'history', history) -%}
    {%- set settings = afterimage._settings_of_relation(history) -%}
    {%- set key = settings.key -%}
    {%- set found = afterimage._history_columns(history, settings) -%}
    {%- if replace -%}
        {%- do afterimage._check_type_1('current_beside_history', history, 'columns', columns, found, key) -%}
        {{ return(afterimage._with_newest_values_sql(history, key, columns, found.all or found.data)) }}
    {%- endif -%}
    {%- do afterimage._check_columns('current_beside_history', history, 'columns', columns, found) -%}
    {{ return(afterimage._current_beside_history_sql(history, key, columns, prefix)) }}
{% endmacro %}


{# The statement that adds columns. #}
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


{# The statement that replaces columns. #}
{% macro _with_newest_values_sql(history, key, columns, names) -%}
(
    select
        {%- for name in names %}
        {{ afterimage._version_value(name, columns, key) }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ history }}
)
{%- endmacro %}


{# A column of a version, or of the newest version of its key if it is a type 1 column. #}
{% macro _version_value(name, type_1, key) -%}
{%- if afterimage._same_name(name, type_1) is none -%}
    {{ afterimage._quoted(name) }}
{%- else -%}
    first_value({{ afterimage._quoted(name) }}) over (
            partition by {{ afterimage._listed(key, indent=16) }}
            order by valid_from_seq desc
        ) as {{ afterimage._quoted(name) }}
{%- endif -%}
{%- endmacro %}


{# Stops unless type 1 columns are data columns and no part of the key. #}
{% macro _check_type_1(macro_name, history, argument, names, columns, key) %}
    {%- set allowed = afterimage._without(columns.data, key) -%}
    {%- do afterimage._check_columns(macro_name, history, argument, names, {'all': allowed if columns.all else [], 'data': allowed}) -%}
{% endmacro %}
