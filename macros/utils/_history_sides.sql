{#
    A select of changes as touches of keys: key columns, `kind`, and what decisions about keys look at.
    A key change touches two, X is its departure and K its arrival (R7); truncates and loads touch none here.
#}
{% macro _history_sides(table, where, has_moves=true) -%}
{%- set kinds = "case when is_move then array('X', 'K') else array(change_oper) end" if has_moves else "array(change_oper)" -%}
select
    {%- for name in table.settings.key %}
    {%- set column = _quoted(name) %}
    {{ "case when kind = 'X' then before." ~ column ~ " else " ~ column ~ " end as " ~ column if has_moves else column }},
    {%- endfor %}
    kind,
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
        {{ _is_key_change(table.settings.key) }} as is_move
        {%- endif %}
    from {{ table.changes }}{{ ' as changes' if has_moves }}
    where {{ where }} and change_oper not in ('T', 'L')
) as moves
    lateral view explode({{ kinds }}) sides as kind
{%- endmacro %}


{#
    True for a side of a key change that belongs to the transaction of a version of its key: that transaction may have
    displaced rows from the key, which the version does not tell (R7). Without transaction ids, changes of one time.
#}
{% macro _is_of_transaction(side, version) %}
    {{- return(
        side ~ ".kind in ('X', 'K') and coalesce(" ~ side ~ ".transaction_id = " ~ version ~ ".transaction_id, "
        ~ side ~ ".changed_at <= " ~ version ~ ".valid_from)"
    ) -}}
{% endmacro %}


{# Whether the batch goes on with such a transaction. #}
{% macro _history_continues(target_relation, table, is_new) %}
    {%- set statement -%}
        select 1
        from (
            {{ _history_sides(table, is_new) }}
        ) as sides
        inner join {{ target_relation }} as opened
            on {{ _equal(table.settings.key, 'sides', 'opened', '=') }}
        where opened.is_current and {{ _is_of_transaction('sides', 'opened') }}
        limit 1
    {%- endset -%}
    {{ return(run_query(statement).rows | length > 0) }}
{% endmacro %}
