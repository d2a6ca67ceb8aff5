{#
    A subquery that gives each row of facts the version of a history that was valid at the fact's time.

        select * from {{ join_as_of(source('shop', 'orders'), 'ordered_at', ref('customers_history'), {'customer_id': 'customer_id'}) }}

    A late fact finds the version of its own time. A late change of the history is found as soon as the history has it, so a
    model that stores the result has to be rebuilt, or be a view.

    Arguments:
      fact            the relation with a row per fact
      at              its column with the time, or with the change_seq, see `by`
      history         ref('<table>_history')
      on              {column of the fact: column of the history}
      columns         columns of the history; default: all data columns except those of `on`
      prefix          of the names of these columns; default: none
      keep_unmatched  true keeps facts for which no version was valid, with NULLs; default: false
      by              time (default) or change_seq: what `at` holds
#}
{% macro join_as_of(fact, at, history, on, columns=none, prefix='', keep_unmatched=false, by='time') %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('join_as_of', 'fact', fact) -%}
    {%- if by not in ('time', 'change_seq') -%}
        {%- do afterimage._wrong_argument('join_as_of', fact, "`by` is '" ~ by ~ "'. Allowed: time, change_seq. Fix: correct it.") -%}
    {%- endif -%}
    {%- set names = afterimage._raw_columns(fact) | map(attribute='name') | list -%}
    {%- do afterimage._check_columns('join_as_of', fact, 'at', [at], {'all': names, 'data': names}) -%}
    {%- set join = {'relation': history, 'on': on, 'columns': columns, 'prefix': prefix, 'how': 'left' if keep_unmatched else 'inner'} -%}
    {%- set facts = {'output': {}, 'extra': []} -%}
    {%- for name in names -%}
        {%- do facts.output.update({name: name}) -%}
    {%- endfor -%}
    {%- set side = afterimage._joined_side('join_as_of', fact, join, [facts], {'all': names}) -%}
    {{ return(afterimage._join_as_of_sql(fact, 'fact.' ~ afterimage._quoted(at), side, '_seq' if by == 'change_seq' else '')) }}
{% endmacro %}


{# The statement. #}
{% macro _join_as_of_sql(fact, at, side, kind) -%}
(
    select
        fact.*
        {%- for column, output in side.output.items() %},
        versions.{{ afterimage._quoted(column) }} as {{ afterimage._quoted(output) }}
        {%- endfor %}
    from {{ fact }} as fact
    {{ 'left' if side.is_left else 'inner' }} join {{ side.relation }} as versions
        on
            {%- for ours, theirs in side.on.items() %}
            {{ 'and ' if not loop.first }}fact.{{ afterimage._quoted(ours) }} = versions.{{ afterimage._quoted(theirs) }}
            {%- endfor %}
            and versions.valid_from{{ kind }} <= {{ at }}
            and ({{ at }} < versions.valid_to{{ kind }} or versions.valid_to{{ kind }} is null)
)
{%- endmacro %}
