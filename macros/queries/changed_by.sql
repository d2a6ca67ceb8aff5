{#
    A subquery of who opened and who closed each version of a history: the transactions, and what the change log knows besides,
    such as the user, if the source says so.

        select * from {{ changed_by(ref('orders_history'), ref('orders_changes')) }}

    The log is joined on change_seq alone, because a truncate has no key and a changed key is in the log under its new one.

    Arguments:
      history  ref('<table>_history')
      changes  ref('<table>_changes')
#}
{% macro changed_by(history, changes) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('changed_by', 'history', history) -%}
    {%- do afterimage._check_relation('changed_by', 'changes', changes) -%}
    {%- set settings = afterimage._settings_of_relation(history) -%}
    {%- set found = afterimage._history_columns(history, settings) -%}
    {%- set of_log = afterimage._raw_columns(changes) | map(attribute='name') | list -%}
    {%- set metadata = [] -%}
    {%- for name in settings.optional_columns if not of_log or name in of_log -%}
        {%- do metadata.append(name) -%}
    {%- endfor -%}
    {{ return(afterimage._changed_by_sql(history, changes, [found.id] + settings.key, metadata)) }}
{% endmacro %}


{# The statement. `max` because rows of a full load share the change_seq of a change, and have no metadata. #}
{% macro _changed_by_sql(history, changes, identity, metadata) -%}
(
    {%- if metadata %}
    with

    authors as (
        select
            change_seq,
            {%- for name in metadata %}
            max({{ afterimage._quoted(name) }}) as {{ afterimage._quoted(name) }}{{ ',' if not loop.last }}
            {%- endfor %}
        from {{ changes }}
        group by change_seq
    )
    {%- endif %}

    select
        {{ afterimage._listed(identity, prefix='versions.') }},
        versions.valid_from,
        versions.valid_to,
        versions.valid_from_seq,
        versions.valid_to_seq,
        versions.opened_by,
        versions.transaction_id,
        {%- for name in metadata %}
        opening.{{ afterimage._quoted(name) }},
        {%- endfor %}
        versions.closed_by,
        versions.closed_by_transaction_id
        {%- for name in metadata %},
        closing.{{ afterimage._quoted(name) }} as {{ afterimage._quoted('closed_by_' ~ name) }}
        {%- endfor %}
    from {{ history }} as versions
    {%- if metadata %}
    left join authors as opening
        on versions.valid_from_seq = opening.change_seq
    left join authors as closing
        on versions.valid_to_seq = closing.change_seq
    {%- endif %}
)
{%- endmacro %}
