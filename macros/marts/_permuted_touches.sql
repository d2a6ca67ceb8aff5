{#
    CTEs that tell which row leaves at a departure (R7): a transaction may permute keys, and then its first move displaces
    a row that itself moves later. That departure closes nothing, the key belongs to the row that arrived.

    Reads a CTE of touches; yields `kept_touches`, without the departures that close nothing, and `departures`, one row
    per key change: where the row that left had begun on its old key. Rows displaced by one transaction leave in the order
    in which they were displaced; a key waits for displaced rows of one transaction only, that of the newest arrival.
#}
{% macro _permuted_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = afterimage._upserts() -%}
{%- set is_displaced = "touch._kind = 'X' and size(state.displaced) > 0 and state.move_group <=> touch._move_group" -%}
move_touches as (
    select
        {{ touches }}.*,
        {{ afterimage._move_group() }} as _move_group
    from {{ touches }}
),

-- the touches of a key, only where they are needed; a fold over them finds which row left
permutations as (
    select
        move_touches.*,
        case
            when
                _kind = 'X'
                {%- if not afterimage._carries_lives(given) %}
                and count_if(_kind = 'K') over (partition by {{ partition }}) > 0
                {%- endif %}
                then collect_list(struct(change_seq, _touch_rank, _kind, _move_group)) over (
                    partition by {{ partition }} order by change_seq, _touch_rank
                    rows between unbounded preceding and unbounded following
                )
        end as _key_touches
    from move_touches
),

left_touches as (
    select
        * except (_key_touches),
        try_element_at(
            filter(
                aggregate(
                    _key_touches,
                    named_struct(
                        -- where the row that is on the key began; NULL when none is
                        'began', cast(null as string),
                        'move_group', cast(null as string),
                        -- where the rows began that the newest arrivals have displaced
                        'displaced', cast(array() as array<string>),
                        'left', cast(array() as array<struct<change_seq: string, began: string, is_displaced: boolean>>)
                    ),
                    (state, touch) -> named_struct(
                        'began',
                        case
                            when touch._kind = 'K' then touch.change_seq
                            when touch._kind in {{ upserts }} then coalesce(state.began, touch.change_seq)
                            when {{ is_displaced }} then state.began
                        end,
                        'move_group', if(touch._kind = 'K', touch._move_group, state.move_group),
                        'displaced',
                        case
                            when touch._kind = 'K'
                                then concat(
                                    if(state.move_group <=> touch._move_group, state.displaced, array()),
                                    if(state.began is null, array(), array(state.began))
                                )
                            when {{ is_displaced }} then slice(state.displaced, 2, size(state.displaced))
                            else state.displaced
                        end,
                        'left',
                        if(
                            touch._kind = 'X',
                            concat(
                                state.left,
                                array(
                                    named_struct(
                                        'change_seq', touch.change_seq,
                                        'began', if({{ is_displaced }}, state.displaced[0], state.began),
                                        'is_displaced', {{ is_displaced }}
                                    )
                                )
                            ),
                            state.left
                        )
                    ),
                    state -> state.left
                ),
                departure -> departure.change_seq = change_seq
            ),
            1
        ) as _departure
    from permutations
),
{%- if afterimage._carries_lives(given) %}

departures as (
    select
        {{ afterimage._listed(key) }},
        change_seq,
        _departure.began as _began
    from left_touches
    where _departure.began is not null
),
{%- endif %}

kept_touches as (
    select * except (_departure)
    from left_touches
    where not coalesce(_departure.is_displaced, false)
),
{%- endmacro %}


{# The transaction of a key change; where its id is not known, changes of one time (R7). #}
{% macro _move_group(prefix='') %}
    {{- return("coalesce(concat('id ', " ~ prefix ~ "transaction_id), concat('at ', " ~ prefix ~ "changed_at))") -}}
{% endmacro %}
