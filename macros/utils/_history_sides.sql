{#
    A select of changes as touches of keys: key columns, `kind`, and what decisions about keys look at.
    A key change touches two, X is its departure and K its arrival (R7); truncates and loads touch none here.
#}
{% macro _history_sides(table, where, has_moves=true) -%}
{%- set is_move = _is_key_change(table.settings.key) -%}
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
from {{ table.changes }} as changes
    lateral view explode(
        {{ "case when " ~ is_move ~ " then array('X', 'K') else array(change_oper) end" if has_moves else "array(change_oper)" }}
    ) sides as kind
where {{ where }} and change_oper not in ('T', 'L')
{%- endmacro %}
