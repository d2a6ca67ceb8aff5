{#
    A subquery of the rows of a history's feed that an incremental model has not seen yet; of all rows in its first run and with
    --full-refresh.

        {{ config(materialized='incremental', ...) }}
        select customer_id, max(feed_at) as feed_at
        from {{ changes_since(ref('customers_history')) }}
        group by customer_id

    What the model has seen is the greatest `feed_at` in its own rows, so a run that was killed is repeated by the next one.

    Arguments:
      history  ref('<table>_history')
      seen     the column of the model that has `feed_at`; default: feed_at
#}
{% macro changes_since(history, seen='feed_at') %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._columns_of_feed('changes_since', history) -%}
    {%- set last = none -%}
    {%- if is_incremental() -%}
        {%- if afterimage._same_name(seen, afterimage._raw_columns(this) | map(attribute='name') | list) is none -%}
            {%- do afterimage._wrong_argument(
                'changes_since', history, this ~ " has no column `" ~ seen ~ "`, in which it keeps how far it has read. Fix: select"
                ~ " `feed_at` as `" ~ seen ~ "`, and run the model with --full-refresh."
            ) -%}
        {%- endif -%}
        {#- a constant, by which Spark skips files #}
        {%- set last = run_query("select cast(max(" ~ afterimage._quoted(seen) ~ ") as string) from " ~ this).rows[0][0] -%}
    {%- endif -%}
    {{ return(afterimage._changes_since_sql(afterimage._feed_relation(history), last)) }}
{% endmacro %}


{# The statement. #}
{% macro _changes_since_sql(feed, last) -%}
(
    select *
    from {{ feed }}
    {%- if last %}
    where feed_at > timestamp {{ afterimage._text(last) }}
    {%- endif %}
)
{%- endmacro %}
