{#
    A subquery of the rows of a history that were valid at a moment: at most one per key.

        select * from {{ as_of(ref('customers_history'), '2026-03-02 12:00:00') }}

    The two bounds are plain comparisons, not `between` or `coalesce(valid_to, ...)`: so Iceberg and Delta can
    compare them with the statistics of their files, and skip those that were closed before the moment or opened after it.
    `valid_to is null` and not `is_current`, because Delta skips nothing by an `or` of a partition and another column.

    Arguments:
      relation  ref('<table>_history')
      at        a UTC timestamp, as text or as an SQL expression, or a change_seq
#}
{% macro as_of(relation, at) %}
    {%- if not execute -%}
        {{ return(relation | string) }}
    {%- endif -%}
    {#- a var is what YAML makes of it: a date, or a number of 35 digits -#}
    {%- set at = at | string | trim -%}
    {%- set settings = afterimage._settings_of_relation(relation) -%}
    {%- set kind = adapter.afterimage.moment_kind(at, settings.system) -%}
    {%- if kind == 'change_seq' -%}
        {{ return(afterimage._valid_at(relation, 'valid_from_seq', 'valid_to_seq', afterimage._text(at))) }}
    {%- elif kind == 'timestamp' -%}
        {{ return(afterimage._valid_at(relation, 'valid_from', 'valid_to', "timestamp " ~ afterimage._text(at))) }}
    {%- elif '(' in at or "'" in at -%}
        {{ return(afterimage._valid_at(relation, 'valid_from', 'valid_to', "cast(" ~ at ~ " as timestamp)")) }}
    {%- endif -%}
    {{ exceptions.raise_compiler_error(
        "`as_of` of " ~ relation ~ ": `at` is '" ~ at ~ "'. Allowed: a UTC timestamp such as '2026-03-02 12:00:00'; a"
        ~ " change_seq, " ~ settings.change_seq_form ~ " in quotes; or an SQL expression that yields a timestamp, such as"
        ~ " \"current_timestamp() - interval 7 days\". Fix: correct it."
    ) }}
{% endmacro %}


{# Rows of a relation whose half-open interval holds a point. #}
{% macro _valid_at(relation, begins, ends, point) -%}
(
    select *
    from {{ relation }}
    where
        {{ begins }} <= {{ point }}
        and ({{ ends }} > {{ point }} or {{ ends }} is null)
)
{%- endmacro %}
