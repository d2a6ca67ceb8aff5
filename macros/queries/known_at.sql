{#
    A subquery of a history as this warehouse had it at a moment: the versions of then, with the values and ends that were known.

        select * from {{ known_at(ref('orders_history'), '2026-03-02 12:00:00') }}

    Reads the feed, so the history needs `feed=true`. Before the first publication of the feed nothing is known.

    Arguments:
      history  ref('<table>_history')
      at       a UTC timestamp, as text or as an SQL expression
#}
{% macro known_at(history, at) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- set columns = afterimage._columns_of_feed('known_at', history) -%}
    {%- set at = at | string | trim -%}
    {%- if adapter.afterimage.moment_kind(at, afterimage._settings_of_relation(history).system) == 'timestamp' -%}
        {%- set point = "timestamp " ~ afterimage._text(at) -%}
    {%- elif '(' in at or "'" in at -%}
        {%- set point = "cast(" ~ at ~ " as timestamp)" -%}
    {%- else -%}
        {%- do afterimage._wrong_argument(
            'known_at', history, "`at` is '" ~ at ~ "'. Allowed: a UTC timestamp such as '2026-03-02 12:00:00', or an SQL"
            ~ " expression that yields one, such as \"current_timestamp() - interval 7 days\". Fix: correct it."
        ) -%}
    {%- endif -%}
    {{ return(afterimage._known_at_sql(history, columns, point)) }}
{% endmacro %}


{# The statement: the last image of each version, unless that is the one before its removal. #}
{% macro _known_at_sql(history, columns, point) -%}
(
    select
        {{ afterimage._listed(columns) }}
    from (
        select
            *,
            row_number() over (
                partition by {{ afterimage._quoted(history.identifier ~ '_id') }}
                order by feed_at desc, feed_image
            ) as _place_from_end
        from {{ afterimage._feed_relation(history) }}
        where feed_at <= {{ point }}
    ) as images
    where
        _place_from_end = 1
        and feed_image = 'after'
)
{%- endmacro %}


{# The columns of a feed, without its own; stops where the history has no feed. #}
{% macro _columns_of_feed(macro_name, history) %}
    {%- do afterimage._check_relation(macro_name, 'history', history) -%}
    {%- set feed = afterimage._feed_relation(history) -%}
    {%- set names = afterimage._raw_columns(feed) | map(attribute='name') | list -%}
    {%- if not names -%}
        {%- do afterimage._wrong_argument(
            macro_name, history, "the table " ~ feed ~ " does not exist, so it is not known what runs have done to the history. Fix: write"
            ~ " {{ afterimage.history(ref('...'), feed=true) }} in the model of the history, and run it."
        ) -%}
    {%- endif -%}
    {{ return(afterimage._without(names, adapter.afterimage.feed_columns() | list)) }}
{% endmacro %}
