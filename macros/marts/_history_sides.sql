{#
    A select of changes as touches of keys: key columns, `_kind`, and what decisions about keys look at.
    A key change touches two, X is its departure and K its arrival (R7); truncates and loads touch none here.
#}
{% macro _history_sides(table, where, has_moves=true) -%}
{%- set kinds = "case when _is_move then array('X', 'K') else array(change_oper) end" if has_moves else "array(change_oper)" -%}
select
    {%- for name in table.settings.key %}
    {%- set column = afterimage._quoted(name) %}
    {{ "case when _kind = 'X' then before." ~ column ~ " else " ~ column ~ " end as " ~ column if has_moves else column }},
    {%- endfor %}
    _kind,
    change_seq,
    changed_at,
    recorded_at,
    transaction_id,
    before,
    before_known_columns
from (
    select{{ ' *' if not has_moves }}
        {%- if has_moves %}
        *,
        {{ afterimage._is_key_change(table.settings.key) }} as _is_move
        {%- endif %}
    from {{ table.changes | indent }}
    where {{ where }} and change_oper not in ('T', 'L')
) as moves
    lateral view explode({{ kinds }}) sides as _kind
{%- endmacro %}


{#
    True for a side of a key change that belongs to the transaction of a version of its key: that transaction may have
    displaced rows from the key, which the version does not tell (R7). Without transaction ids, changes of one time.
#}
{% macro _is_of_transaction(side, version) %}
    {{- return(
        side ~ "._kind in ('X', 'K') and coalesce(" ~ side ~ ".transaction_id = " ~ version ~ ".transaction_id, "
        ~ side ~ ".changed_at <= " ~ version ~ ".valid_from)"
    ) -}}
{% endmacro %}


{#
    True for a side of a key change that names neither its transaction nor its time. All such key changes count as one
    transaction (R7), and only the whole log of a key tells what they have displaced from it.
#}
{% macro _is_of_any_transaction(side) %}
    {{- return(
        side ~ "._kind in ('X', 'K') and " ~ side ~ ".transaction_id is null and " ~ side ~ ".changed_at is null"
    ) -}}
{% endmacro %}


{# Whether the batch goes on with such a transaction. #}
{% macro _history_continues(target_relation, table, is_new) %}
    {%- set statement -%}
        select 1
        from (
            {{ afterimage._history_sides(table, is_new) }}
        ) as sides
        left join {{ target_relation }} as opened
            on {{ afterimage._equal(table.settings.key, 'sides', 'opened', '=') }} and opened.is_current
        where {{ afterimage._is_of_transaction('sides', 'opened') }} or {{ afterimage._is_of_any_transaction('sides') }}
        limit 1
    {%- endset -%}
    {{ return(run_query(statement).rows | length > 0) }}
{% endmacro %}
