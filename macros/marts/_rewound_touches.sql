{#
    CTEs that take a base table back to the time of its load (R8). Reads the CTE `touches` and `_closers`; yields `rewound`.

    What a key held at the load is told by its first change after it, before the next load or truncate:
    insert     nothing, the row came later
    arrival    frozen base: the base row. Live base: nothing; but where the same transaction then moves another row away
               from the key, as when two rows swap their keys, that row
    update, departure, delete with a before image
               frozen base: the base row. Live base: the before image, and the base row where that does not know a column;
               also for a key that the base has lost since
    update without a before image
               frozen base: the base row. Live base: the key alone, also for one that the base has lost since
    others     the base row
#}
{% macro _rewound_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set carried = given.carried -%}
{%- set is_live = given.base.kind == 'live' -%}
{%- set values = afterimage._without(given.columns, key) -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set has_displaced = is_live and given.has_moves -%}
{%- if has_displaced -%}
{%- set image = afterimage._listed(values) | replace('\n        ', ' ') if values else 'true' -%}
{%- set same_row -%}
{%- if not values %}true{% endif -%}
{%- for name in values -%}
{%- if name in carried -%}
(
                {%- for known in ['_row.known_columns', 'before_known_columns'] %}
                ({{ known }} is not null and not array_contains({{ known }}, {{ afterimage._text(name) }}))
                or
                {%- endfor %} _row.{{ afterimage._quoted(name) }} <=> before.{{ afterimage._quoted(name) }}
            )
{%- else -%}
_row.{{ afterimage._quoted(name) }} <=> before.{{ afterimage._quoted(name) }}
{%- endif -%}
{{ '\n            and ' if not loop.last }}
{%- endfor -%}
{%- endset -%}
-- a load, or a truncate, concerns every key: what comes after it says nothing about the load before
dated_touches as (
    select
        {{ touches }}.*,
        {{ afterimage._move_group(touches ~ '.') }} as _move_group,
        size(filter(_closers._loads, _load -> _load.change_seq <= {{ touches }}.change_seq))
        + size(filter(_closers._truncates, _truncate -> _truncate <= {{ touches }}.change_seq)) as _era
    from {{ touches }}
    cross join _closers
),

grouped_touches as (
    select
        *,
        count_if(_kind = 'L') over (partition by {{ partition }}, _era) > 0 as _is_in_base,
        row_number() over (
            partition by {{ partition }}, _era, _move_group, _kind = 'L' order by change_seq, _touch_rank
        ) as _number_in_transaction,
        collect_list(
            case when _kind in ('K', 'I', 'U') then struct({{ image }}, known_columns) end
        ) over (
            partition by {{ partition }}, _era, _move_group order by change_seq, _touch_rank
            rows between unbounded preceding and 1 preceding
        ) as _brought,
        count_if(_kind in ('K', 'I')) over (partition by {{ partition }}, _era, _move_group)
        - count_if(_kind in ('X', 'D')) over (partition by {{ partition }}, _era, _move_group) as _net
    from dated_touches
),

departures_of_others as (
    select
        *,
        _kind = 'X'
        and not exists(
            _brought,
            _row -> {{ same_row }}
        ) as _is_other_row
    from grouped_touches
),

compared_departures as (
    select
        *,
        bool_or(_is_other_row) over (partition by {{ partition }}, _era, _move_group) as _has_other_row
    from departures_of_others
),

-- whether a key held a row before a transaction, at the transaction's first touch of it; NULL where that does not show
transactions as (
    select
        *,
        case
            when _number_in_transaction > 1 then null
            when _kind in ('U', 'X', 'D') then true
            when _kind = 'I' then false
            when _kind = 'K' and _has_other_row then true
            when _kind = 'K' and _net <> 0 then _net < 0
        end as _held_a_row
    from compared_departures
),

later_transactions as (
    select
        *,
        first_value(_held_a_row, true) over (
            partition by {{ partition }}, _era order by change_seq, _touch_rank
            rows between 1 following and unbounded following
        ) as _held_a_row_later
    from transactions
),

-- departures of a row that the transaction did not bring: it differs from what was brought, or the key was not empty
displacements as (
    select
        *,
        case
            when
                _kind = 'X'
                and case
                    when _has_other_row then _is_other_row
                    when _net <> 0 then _net < 0
                    else coalesce(
                        last_value(_held_a_row_later) over (
                            partition by {{ partition }}, _era, _move_group order by change_seq, _touch_rank
                            rows between unbounded preceding and unbounded following
                        ),
                        _is_in_base
                    )
                end
                then struct(
                    _move_group as _move_group,
                    before as before,
                    before_known_columns as before_known_columns
                )
        end as _displaced
    from later_transactions
),

{% set touches = 'displacements' -%}
{%- endif -%}
neighbours as (
    select
        {{ touches }}.*,
        lag({{ touches }}.change_seq) over by_key as _previous_seq,
        lag({{ touches }}._kind) over by_key as _previous_kind,
        lead({{ touches }}.change_seq) over by_key as _next_seq,
        lead({{ touches }}._kind) over by_key as _next_kind,
        {%- if is_live %}
        lead({{ touches }}.before) over by_key as _next_before,
        lead({{ touches }}.before_known_columns) over by_key as _next_before_known_columns,
        {%- endif %}
        {%- if has_displaced %}
        lead({{ touches }}._move_group) over by_key as _next_move_group,
        first_value({{ touches }}._displaced, true) over (
            partition by {{ afterimage._listed(key, touches ~ '.') | replace('\n        ', ' ') }}
            order by {{ touches }}.change_seq, {{ touches }}._touch_rank
            rows between 1 following and unbounded following
        ) as _next_displaced,
        {%- endif %}
        try_element_at(filter(_closers._loads, _load -> _load.change_seq <= {{ touches }}.change_seq), -1) as _load,
        try_element_at(filter(_closers._loads, _load -> _load.change_seq > {{ touches }}.change_seq), 1) as _next_load,
        {%- if is_live %}
        _closers._truncates,
        {%- endif %}
        _closers._closers
    from {{ touches }}
    cross join _closers
    window by_key as (
        partition by {{ afterimage._listed(key, touches ~ '.') | replace('\n        ', ' ') }}
        order by {{ touches }}.change_seq, {{ touches }}._touch_rank
    )
),

-- the first change of a key after a load: on the load's row where there is one, else on the change itself
first_changes as (
    select
        *,
        case
            when
                _kind = 'L'
                and _next_kind <> 'L'
                and (_next_load is null or _next_seq < _next_load.change_seq)
                -- a truncate in between is the first change of every key; one with a scope is that of a row in its scope,
                -- unless the row's next change shows that it was still there
                and not exists(
                    _closers,
                    _closer -> _closer.change_oper = 'T'
                    and _closer.change_seq > neighbours.change_seq
                    and _closer.change_seq <= _next_seq
                    {%- if given.scopes %}
                    and (_closer.truncate_scope is null or _next_kind in ('I', 'K'))
                    {%- endif %}
                    {%- for name in given.scopes %}
                    and (
                        not coalesce(map_contains_key(_closer.truncate_scope, {{ afterimage._text(name) }}), false)
                        or (
                            (known_columns is null or array_contains(known_columns, {{ afterimage._text(name) }}))
                            and cast({{ afterimage._quoted(name) }} as string) <=> _closer.truncate_scope[{{ afterimage._text(name) }}]
                        )
                    )
                    {%- endfor %}
                )
                then {{ "if(_next_kind = 'K' and _next_displaced._move_group <=> _next_move_group, 'displaced', _next_kind)"
                    if has_displaced else '_next_kind' }}
        end as _first_change{{ ',' if is_live }}
        {%- if is_live %}
        case
            when
                _load is null
                or _kind = 'L'
                or _previous_seq >= _load.change_seq
                or _previous_kind = 'S'
                or exists(
                    _truncates, truncate -> truncate > _load.change_seq and truncate <= neighbours.change_seq
                )
                then null
            when _kind in ('U', 'X', 'D') and before is not null
                then struct(before as before, before_known_columns as before_known_columns)
            when _kind = 'U'
                then struct(before as before, array({{ afterimage._texts(key) }}) as before_known_columns)
            {%- if has_displaced %}
            when _kind = 'K' and _next_displaced._move_group <=> _move_group
                then struct(
                    _next_displaced.before as before,
                    _next_displaced.before_known_columns as before_known_columns
                )
            {%- endif %}
        end as _lost_row
        {%- endif %}
    from neighbours
),

{%- if is_live %}

-- what the row of a load must become; and a row that the base has lost, before its first change
sides as (
    select
        *,
        _side = 'L' and _lost_row is not null as _is_lost,
        coalesce(_first_change = 'U' and _next_before is null, false) as _is_blind,
        case
            when _first_change in ('U', 'X', 'D') and _next_before is not null
                then struct(_next_before as before, _next_before_known_columns as before_known_columns)
            {%- if has_displaced %}
            when _first_change = 'displaced'
                then struct(
                    _next_displaced.before as before,
                    _next_displaced.before_known_columns as before_known_columns
                )
            {%- endif %}
        end as _at_load
    from first_changes
        lateral view explode(
            case when _lost_row is null then array(_kind) else array('L', _kind) end
        ) load_and_change as _side
    where coalesce(_first_change not in ('I', 'K'), true)
),
{%- endif %}

rewound as (
    {%- if is_live %}
    select
        {{ afterimage._listed(key) }},
        {%- for name in values %}
        case
            when _is_lost then _lost_row.before.{{ afterimage._quoted(name) }}
            when
                _at_load is not null
                {%- if name in carried %}
                {#- what the before image does not know is taken from the base row (decision 7) #}
                and (
                    _at_load.before_known_columns is null
                    or array_contains(_at_load.before_known_columns, {{ afterimage._text(name) }})
                )
                {%- endif %}
                then _at_load.before.{{ afterimage._quoted(name) }}
            else {{ afterimage._quoted(name) }}
        end as {{ afterimage._quoted(name) }},
        {%- endfor %}
        _side as _kind,
        if(_side = 'L', 1, _touch_rank) as _touch_rank,
        if(_is_lost, _load.change_seq, change_seq) as change_seq,
        if(_is_lost, coalesce(_load.changed_at, {{ afterimage._beginning_of_time() }}), changed_at) as changed_at,
        if(_is_lost, null, transaction_id) as transaction_id,
        {%- for name in given.metadata %}
        if(_is_lost, null, {{ name }}) as {{ name }},
        {%- endfor %}
        {%- for name in afterimage._columns_of_some_touches(given) %}
        {{ name }},
        {%- endfor %}
        case
            when _is_lost then _lost_row.before_known_columns
            when _is_blind then array({{ afterimage._texts(key) }})
            when _at_load.before_known_columns is not null
                then array_union(known_columns, _at_load.before_known_columns)
            when _at_load is not null then null
            else known_columns
        end as known_columns
    from sides
    {%- else %}
    select
        {{ afterimage._listed(key + values) }},
        _kind,
        _touch_rank,
        change_seq,
        changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- for name in afterimage._columns_of_some_touches(given) %}
        {{ name }},
        {%- endfor %}
        known_columns
    from first_changes
    where coalesce(_first_change <> 'I', true)
    {%- endif %}
),
{%- endmacro %}
