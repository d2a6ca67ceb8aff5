{#
    A subquery of a history by days: the version that each key had at the end of each day, UTC.

        select * from {{ daily(ref('orders_history'), first_day='2026-03-01', last_day='2026-03-31') }}
        select * from {{ daily(ref('orders_history'), dense=false) }}

    Arguments:
      history    ref('<table>_history')
      first_day  of a dense result
      last_day   of a dense result; default: today
      dense      true (default): a row per key and day; false: a row per key and day at whose end it has another version than
                 at the end of the day before, with the day at which this version is gone (`until_day`)
      columns    default: key and data columns
#}
{% macro daily(history, first_day=none, last_day=none, dense=true, columns=none) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('daily', 'history', history) -%}
    {%- for name, day in {'first_day': first_day, 'last_day': last_day}.items() -%}
        {%- if day is not none and (not dense or not modules.re.match('^[0-9]{4}-[0-9]{2}-[0-9]{2}$', day | string)) -%}
            {%- do afterimage._wrong_argument(
                'daily', history, "`" ~ name ~ "` is '" ~ day ~ "'. Allowed: a date such as 2026-03-02, and only if the result is"
                ~ " dense. Fix: correct it, or write a `where` on `day` instead."
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if dense and first_day is none -%}
        {%- do afterimage._wrong_argument(
            'daily', history, "a dense result needs `first_day`. Fix: write first_day='2026-03-01', or dense=false."
        ) -%}
    {%- endif -%}
    {%- set settings = afterimage._settings_of_relation(history) -%}
    {%- set found = afterimage._history_columns(history, settings) -%}
    {%- if columns is not none -%}
        {%- do afterimage._check_columns('daily', history, 'columns', columns, found) -%}
    {%- endif -%}
    {%- set names = ([found.id] if found.id else []) + (columns if columns is not none else found.data) | list -%}
    {{ return(afterimage._daily_sql(history, names, dense, first_day, last_day)) }}
{% endmacro %}


{#
    The statement. A version is the one at the end of all days from that of valid_from to the one before that of valid_to; so a
    version that begins and ends on one day has no row. No engine's own function makes the days: 100,000 numbers of five digits do.
#}
{% macro _daily_sql(history, names, dense, first_day, last_day) -%}
(
    {%- if dense %}
    with

    digits as (
        {%- for digit in range(10) %}
        select {{ digit }} as digit{{ '\n        union all' if not loop.last }}
        {%- endfor %}
    ),

    numbers as (
        select
            ones.digit + 10 * tens.digit + 100 * hundreds.digit + 1000 * thousands.digit
            + 10000 * ten_thousands.digit as number
        from digits as ones
        cross join digits as tens
        cross join digits as hundreds
        cross join digits as thousands
        cross join digits as ten_thousands
    ),

    all_days as (
        select cast(date '{{ first_day }}' + number * interval '1' day as date) as day
        from numbers
    ),

    days as (
        select day
        from all_days
        where day <= {{ "date '" ~ last_day ~ "'" if last_day is not none else 'current_date' }}
    ),
    {%- else %}
    with
    {%- endif %}

    versions as (
        select
            cast(valid_from as date) as day,
            cast(valid_to as date) as until_day,
            {{ afterimage._listed(names, indent=12) }}
        from {{ history }}
        where
            cast(valid_from as date) < cast(valid_to as date)
            or valid_to is null
    )

    select
        {%- if dense %}
        days.day,
        {{ afterimage._listed(names, prefix='versions.') }}
    from versions
    inner join days
        on
            versions.day <= days.day
            and (days.day < versions.until_day or versions.until_day is null)
        {%- else %}
        day,
        until_day,
        {{ afterimage._listed(names) }}
    from versions
        {%- endif %}
)
{%- endmacro %}
