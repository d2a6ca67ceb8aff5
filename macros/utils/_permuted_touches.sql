{#
    CTEs without the departures that close nothing (R7): a transaction may permute keys, and then its first move displaces
    a row that itself moves later. Reads the CTE `touches`; yields `kept_touches`.
#}
{% macro _permuted_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = _listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = _upserts() -%}
move_touches as (
    select
        {{ touches }}.*,
        {{ _move_group() }} as _move_group
    from {{ touches }}
),

-- the touches of a key, only where it was left and arrived at; a fold over them finds the departures
permutations as (
    select
        move_touches.*,
        case
            when
                _kind = 'X'
                and count_if(_kind = 'K') over (partition by {{ partition }}) > 0
                then collect_list(struct(change_seq, _touch_rank, _kind, _move_group)) over (
                    partition by {{ partition }} order by change_seq, _touch_rank
                    rows between unbounded preceding and unbounded following
                )
        end as _key_touches
    from move_touches
),

kept_touches as (
    select * except (_key_touches)
    from permutations
    where
        _key_touches is null
        or not array_contains(
            aggregate(
                _key_touches,
                named_struct(
                    'is_open', false,
                    'move_group', cast(null as string),
                    'displaced', 0,
                    'skipped', cast(array() as array<string>)
                ),
                (state, touch) -> named_struct(
                    'is_open',
                    touch._kind in {{ upserts }}
                    or (
                        touch._kind = 'X'
                        and state.is_open
                        and state.displaced > 0
                        and state.move_group <=> touch._move_group
                    ),
                    'move_group', if(touch._kind = 'K', touch._move_group, state.move_group),
                    'displaced',
                    case
                        when touch._kind = 'K' and state.move_group <=> touch._move_group
                            then state.displaced + if(state.is_open, 1, 0)
                        when touch._kind = 'K' then if(state.is_open, 1, 0)
                        when
                            touch._kind = 'X'
                            and state.displaced > 0
                            and state.move_group <=> touch._move_group
                            then state.displaced - 1
                        else state.displaced
                    end,
                    'skipped',
                    if(
                        touch._kind = 'X'
                        and state.displaced > 0
                        and state.move_group <=> touch._move_group,
                        concat(state.skipped, array(touch.change_seq)),
                        state.skipped
                    )
                ),
                state -> state.skipped
            ),
            change_seq
        )
),
{%- endmacro %}


{# The transaction of a key change; where its id is not known, changes of one time (R7). #}
{% macro _move_group() %}
    {{- return("coalesce(transaction_id, concat('at ', changed_at))") -}}
{% endmacro %}
