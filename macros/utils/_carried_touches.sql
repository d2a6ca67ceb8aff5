{#
    CTEs in which what a change does not know is taken from the version before, but never over a gap (R9).
    Reads the CTE `touches`; yields `filled`, in which `unknown_columns` takes the place of `known_columns`.
#}
{% macro _carried_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = _listed(key) | replace('\n        ', ' ') -%}
{%- set carried = given.carried -%}
{%- set upserts = _upserts() -%}
segments as (
    select
        *,
        coalesce(
            sum(case when _kind not in {{ upserts }} then 1 else 0 end) over (
                partition by {{ partition }} order by change_seq, _touch_rank
                rows between unbounded preceding and 1 preceding
            ),
            0
        )
        + sum(case when _kind = 'K' then 1 else 0 end) over (
            partition by {{ partition }} order by change_seq, _touch_rank
            rows between unbounded preceding and current row
        ) as _segment
    from {{ touches }}
),

carried as (
    select
        * except ({{ _listed(carried) }}),
        {%- for name in carried %}
        last_value(
            case
                when _kind not in {{ upserts }} then null
                when known_columns is null or array_contains(known_columns, {{ _text(name) }})
                    then struct({{ _quoted(name) }} as value)
                {%- if given.has_moves %}
                when _kind = 'K' and (before_known_columns is null or array_contains(before_known_columns, {{ _text(name) }}))
                    then struct(before.{{ _quoted(name) }} as value)
                {%- endif %}
            end,
            true
        ) over by_segment as carried_{{ loop.index }}{{ ',' if not loop.last }}
        {%- endfor %}
    from segments
    window by_segment as (
        partition by {{ partition }}, _segment order by change_seq, _touch_rank
        rows between unbounded preceding and current row
    )
),

filled as (
    select
        * except (known_columns),
        {%- for name in carried %}
        carried_{{ loop.index }}.value as {{ _quoted(name) }},
        {%- endfor %}
        nullif(
            array_compact(array(
                {%- for name in carried %}
                case when carried_{{ loop.index }} is null then {{ _text(name) }} end{{ ',' if not loop.last }}
                {%- endfor %}
            )),
            array()
        ) as unknown_columns
    from carried
),
{%- endmacro %}
