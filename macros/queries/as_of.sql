{#
    A subquery of the rows of a history that were valid at a moment: at most one per key.

        select * from {{ as_of(ref('customers_history'), '2026-03-02 12:00:00') }}

    The two bounds are plain comparisons, not `between` or `coalesce(valid_to, ...)`: so Iceberg and Delta can
    compare them with the statistics of their files, and skip those that were closed before the moment or opened after it.
    `valid_to is null` and not `is_current`, because Delta skips nothing by an `or` of a partition and another column.

    Arguments:
      relation  ref('<table>_history')
      at        a UTC timestamp, as text or as an SQL expression, or a change_seq
      cut       instead: 'latest', the last cut of the table's task. The rows then have a column `cut_seq`
#}
{% macro as_of(relation, at=none, cut=none) %}
    {#- dbt knows by this that the model runs after the cuts -#}
    {%- set cuts = ref('afterimage_cuts') if cut is not none else none -%}
    {%- if not execute -%}
        {{ return(relation | string) }}
    {%- endif -%}
    {%- if cut is not none -%}
        {{ return(afterimage._at_last_cut(relation, at, cut, cuts)) }}
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


{# Rows of a history at the last cut of its task, with the cut. Before the first one there are none. #}
{% macro _at_last_cut(relation, at, cut, cuts) %}
    {%- set settings = afterimage._settings_of_relation(relation) -%}
    {%- if at is not none or cut != 'latest' -%}
        {%- do afterimage._wrong_argument(
            'as_of', relation, "`cut` is '" ~ cut ~ "'" ~ (" and `at` is '" ~ at ~ "'" if at is not none else '')
            ~ ". Allowed: cut='latest' without `at`. Fix: for an earlier cut, write its change_seq of afterimage_cuts as `at`."
        ) -%}
    {%- elif not settings.task -%}
        {%- do afterimage._wrong_argument(
            'as_of', relation, "`cut` is 'latest', and " ~ settings.source_table ~ " has no setting `task`, so it has no cut. Fix: set `task`."
        ) -%}
    {%- endif -%}
    {%- set seq = '' -%}
    {%- if load_relation(cuts) is not none -%}
        {%- set seq = run_query(
            "select max_by(change_seq, cut_at) from " ~ cuts ~ " where task = " ~ afterimage._text(settings.task)
        ).rows[0][0] or '' -%}
    {%- endif -%}
    {%- if not seq -%}
        {%- do exceptions.warn("`as_of` of " ~ relation ~ ": the task '" ~ settings.task ~ "' has no cut yet, so there are no rows.") -%}
    {%- endif -%}
    {%- set point = afterimage._text(seq) -%}
    {{ return(afterimage._valid_at(relation, 'valid_from_seq', 'valid_to_seq', point, point ~ ' as cut_seq')) }}
{% endmacro %}


{# Rows of a relation whose half-open interval holds a point, with one more column if it is given. #}
{% macro _valid_at(relation, begins, ends, point, added=none) -%}
(
    select *{{ ', ' ~ added if added }}
    from {{ relation }}
    where
        {{ begins }} <= {{ point }}
        and ({{ ends }} > {{ point }} or {{ ends }} is null)
)
{%- endmacro %}
