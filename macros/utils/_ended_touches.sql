{#
    CTEs after which truncates, and loads that lack a key, are touches of the keys that they end: kinds T and R (R6, R8).
    Reads the CTE `touches` and `_closers`; yields `closed_touches`.
#}
{% macro _ended_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = _listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = _upserts() -%}
-- the first truncate, or load without this key, after a touch and before the next one
neighbouring_touches as (
    select
        {{ touches }}.*,
        lead(change_seq) over by_key as _next_touch_seq,
        lead(_kind) over by_key as _next_touch_kind
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

ends as (
    select
        neighbouring_touches.*,
        case
            when neighbouring_touches._kind in {{ upserts }}
                then element_at(
                    filter(
                        _closers._closers,
                        _closer -> _closer.change_seq > neighbouring_touches.change_seq
                        and (
                            neighbouring_touches._next_touch_seq is null
                            or _closer.change_seq < neighbouring_touches._next_touch_seq
                            or (
                                _closer.change_seq = neighbouring_touches._next_touch_seq
                                and not (_closer.change_oper = 'L' and neighbouring_touches._next_touch_kind = 'L')
                            )
                        )
                    ),
                    1
                )
        end as _closer
    from neighbouring_touches
    cross join _closers
),

closed_touches as (
    select
        {{ _listed(key) }},
        case when _is_end then if(_closer.change_oper = 'T', 'T', 'R') else _kind end as _kind,
        case when _is_end then 0 else _touch_rank end as _touch_rank,
        case when _is_end then _closer.change_seq else change_seq end as change_seq,
        case when _is_end then _closer.changed_at else changed_at end as changed_at,
        transaction_id,
        known_columns,
        {%- if _keeps_before(given) %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(given.columns, key)) }}
    from ends
        lateral view explode(
            case when _closer is null then array(false) else array(false, true) end
        ) sides as _is_end
),
{%- endmacro %}


{# The CTE `_closers`, one row: truncates, and the markers of loads, which end what they do not hold (R6, R8). #}
{% macro _closers() -%}
_closers as (
    select
        coalesce(
            array_sort(collect_list(struct(change_seq, change_oper, changed_at))), array()
        ) as _closers,
        coalesce(
            array_sort(
                collect_list(case when change_oper = 'L' then struct(change_seq, changed_at) end)
            ),
            array()
        ) as _loads,
        array_sort(collect_list(case when change_oper = 'T' then change_seq end)) as _truncates
    from changes
    where change_oper = 'T' or load_rows is not null
),
{%- endmacro %}
