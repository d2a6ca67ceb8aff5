{#
    A subquery of a history as a dimension: a surrogate key per version, a durable key per key, and a row for facts without a match.

        select * from {{ dimension(ref('customers_history'), unknown={'city': 'unknown'}) }}

    Runs on Spark and DuckDB: other engines hash bytes only.

    Arguments:
      history  ref('<table>_history')
      columns  default: key and data columns
      type_1   columns of these that show the newest value of the key in all its versions
      unknown  {column: text} of the row for facts without a match, whose keys are '-1'; other columns of it are NULL
#}
{% macro dimension(history, columns=none, unknown={}, type_1=[]) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('dimension', 'history', history) -%}
    {%- set settings = afterimage._settings_of_relation(history) -%}
    {%- set found = afterimage._history_columns(history, settings) -%}
    {%- do afterimage._check_columns('dimension', history, 'columns', columns if columns is not none else [], found) -%}
    {%- do afterimage._check_columns('dimension', history, 'unknown', unknown.keys() | list, found) -%}
    {%- do afterimage._check_type_1('dimension', history, 'type_1', type_1, found, settings.key) -%}
    {%- set names = columns if columns is not none else found.data -%}
    {{ return(afterimage._dimension_sql(history, found.id, settings.key, names, unknown, type_1)) }}
{% endmacro %}


{# The statement. With its length before it, no part of a key runs into the next. #}
{% macro _dimension_sql(history, id, key, names, unknown, type_1) -%}
{%- set parts = [] -%}
{%- for name in key -%}
    {%- set text = 'cast(' ~ afterimage._quoted(name) ~ ' as string)' -%}
    {%- do parts.append('length(' ~ text ~ "), ':', " ~ text) -%}
{%- endfor -%}
(
    select
        {{ afterimage._quoted(id) }} as surrogate_key,
        md5(concat({{ parts | join(', ') }})) as durable_key,
        {%- for name in names %}
        {{ afterimage._version_value(name, type_1, key) }},
        {%- endfor %}
        valid_from,
        valid_to,
        is_current
    from {{ history }}
    union all
    select
        '-1' as surrogate_key,
        '-1' as durable_key,
        {%- for name in names %}
        {{ afterimage._text(unknown[name]) if name in unknown else 'null' }} as {{ afterimage._quoted(name) }},
        {%- endfor %}
        timestamp '1900-01-01' as valid_from,
        null as valid_to,
        true as is_current
)
{%- endmacro %}
