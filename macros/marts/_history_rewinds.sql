{#
    A select of the keys whose first change in the batch contradicts the version that the load gave them (R8): they must be
    built again from the load on.
#}
{% macro _history_rewinding_keys(table, found, is_new, versions) -%}
{%- set key = table.settings.key -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set is_live = table.settings.base.kind == 'live' -%}
with

sides as (
    {{ afterimage._history_sides(table, is_new) | indent }}
),

numbered as (
    select
        *,
        row_number() over (partition by {{ partition }} order by change_seq) as touch_number,
        count_if(_kind = 'X') over (partition by {{ partition }}) as departures
    from sides
)

select{{ '\n    ' if key | length > 1 else ' ' }}{{ afterimage._listed(key, 'touched.', indent=4) }}
from numbered as touched
left join {{ versions }} as opened
    on
        {{ afterimage._equal(key, 'touched', 'opened', '=', indent=8) }}
        and {{ afterimage._stands_at('touched.change_seq', 'opened') | indent }}
where
    touched.touch_number = 1
    {%- if found.truncates %}
    -- a truncate before it is the first change of every key, but for one with a scope
    and coalesce(
        touched.change_seq < (
            select min(change_seq)
            from {{ table.changes | indent(12) }}
            where {{ is_new }} and change_oper = 'T' and truncate_scope is null
        ),
        true
    )
    {%- endif %}
    {%- if is_live %}
    and (
        -- the key was empty before: what the load, or the first transaction after it, left there was another row
        opened.opened_by is not null and touched._kind in ('I', 'K')
        -- the base may have lost the row since
        or opened.opened_by is null and (
            touched._kind in ('U', 'X', 'D')
            or touched._kind = 'K' and touched.departures > 0
        )
        or opened.opened_by = 'L' and touched._kind in ('U', 'X', 'D') and (
            touched._kind = 'U' and touched.before is null
            {%- for name in afterimage._without(table.columns, key) %}
            or touched.before is not null and (
                touched.before_known_columns is null
                or array_contains(touched.before_known_columns, {{ afterimage._text(name) }})
            )
            and (
                not (touched.before.{{ afterimage._quoted(name) }} <=> opened.{{ afterimage._quoted(name) }})
                or coalesce(array_contains(opened.unknown_columns, {{ afterimage._text(name) }}), false)
            )
            {%- endfor %}
        )
    )
    {%- else %}
    and opened.opened_by = 'L' and touched._kind = 'I'
    {%- endif %}
{%- endmacro %}


{# Whether there is such a key, in a batch that is newer than all before it. #}
{% macro _history_rewinds(target_relation, table, found, is_new) %}
    {%- set versions = "(select * from " ~ target_relation ~ " where is_current)" -%}
    {{ return(run_query(
        "select 1 from (" ~ afterimage._history_rewinding_keys(table, found, is_new, versions) ~ ") as rewinding_keys limit 1"
    ).rows | length > 0) }}
{% endmacro %}
