{#
    CTEs after which truncates, and loads that lack a key, are touches of the keys that they end: kinds T and R (R6, R8).
    Reads a CTE of touches and `_closers`; yields `closed_touches`.

    An end follows the touch that it ends, the first one that reaches its row. A departure may be that of a displaced row,
    see `_permuted_touches`: then the key is still open after it, so it is followed by an end as well.
#}
{% macro _ended_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = afterimage._upserts() -%}
-- the first truncate, or load without this key, after a touch and before the next one
neighbouring_touches as (
    select
        {{ touches }}.*,
        lead(change_seq) over by_key as _next_touch_seq,
        lead(_kind) over by_key as _next_touch_kind
        {%- for name in given.scopes %},
        -- the value that a truncate's scope is compared with, as text; NULL when it was never known
        last_value(
            case
                when _kind in {{ upserts }} and (known_columns is null or array_contains(known_columns, {{ afterimage._text(name) }}))
                    then struct(cast({{ afterimage._quoted(name) }} as string) as value)
            end,
            true
        ) over (
            partition by {{ partition }} order by change_seq, _touch_rank
            rows between unbounded preceding and current row
        ) as _scope_{{ loop.index }}
        {%- endfor %}
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

ends as (
    select
        neighbouring_touches.*,
        case
            when neighbouring_touches._kind in {{ "('S', 'L', 'I', 'U', 'K', 'X')" if given.has_moves else upserts }}
                then try_element_at(
                    filter(
                        _closers._closers,
                        _closer -> _closer.change_seq > neighbouring_touches.change_seq
                        {%- if given.replays %}
                        -- a version that stood has outlived what came before
                        and (neighbouring_touches._kind <> 'S' or _closer.change_seq >= neighbouring_touches._from_seq)
                        {%- endif %}
                        and (
                            neighbouring_touches._next_touch_seq is null
                            or _closer.change_seq < neighbouring_touches._next_touch_seq
                            or (
                                _closer.change_seq = neighbouring_touches._next_touch_seq
                                and not (_closer.change_oper = 'L' and neighbouring_touches._next_touch_kind = 'L')
                            )
                        )
                        {%- for name in given.scopes %}
                        and (
                            not coalesce(map_contains_key(_closer.truncate_scope, {{ afterimage._text(name) }}), false)
                            or (
                                neighbouring_touches._scope_{{ loop.index }} is not null
                                and neighbouring_touches._scope_{{ loop.index }}.value <=> _closer.truncate_scope[{{ afterimage._text(name) }}]
                            )
                        )
                        {%- endfor %}
                    ),
                    1
                )
        end as _closer
    from neighbouring_touches
    cross join _closers
),

closed_touches as (
    select
        {{ afterimage._listed(key + afterimage._without(given.columns, key)) }},
        case when _is_end then if(_closer.change_oper = 'T', 'T', 'R') else _kind end as _kind,
        case when _is_end then 0 else _touch_rank end as _touch_rank,
        case when _is_end then _closer.change_seq else change_seq end as change_seq,
        case when _is_end then _closer.changed_at else changed_at end as changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- for name in afterimage._columns_of_some_touches(given) %}
        {{ name }},
        {%- endfor %}
        known_columns
    from ends
        lateral view explode(
            case when _closer is null then array(false) else array(false, true) end
        ) sides as _is_end
),
{%- endmacro %}


{# The CTE `_closers`, one row: truncates, and the markers of loads, which end what they do not hold (R6, R8). #}
{% macro _closers(given) -%}
_closers as (
    select
        coalesce(
            array_sort(
                collect_list(struct(change_seq, change_oper, changed_at{{ ', truncate_scope' if given.scopes }}))
                {{- afterimage._by_position() if given.scopes }}
            ),
            array()
        ) as _closers,
        coalesce(
            array_sort(
                collect_list(case when change_oper = 'L' then struct(change_seq, changed_at) end)
            ),
            array()
        ) as _loads,
        array_sort(
            collect_list(case when change_oper = 'T'{{ ' and truncate_scope is null' if given.scopes }} then change_seq end)
        ) as _truncates
    from changes
    where change_oper = 'T' or load_rows is not null
),
{%- endmacro %}


{# Sorts closers by hand: maps have no order. #}
{% macro _by_position() %}
    {{- return(
        ", (one, other) -> case when (one.change_seq, one.change_oper) < (other.change_seq, other.change_oper) then -1"
        ~ " when (one.change_seq, one.change_oper) > (other.change_seq, other.change_oper) then 1 else 0 end"
    ) -}}
{% endmacro %}
