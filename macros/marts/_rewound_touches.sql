{#
    CTEs that take a base table back to the time of its load (R8). Reads the CTE `touches` and `_closers`; yields `rewound`.

    What a key held at the load is told by its first change after it, before the next load or truncate:
    insert     nothing, the row came later
    arrival    frozen base: the base row. Live base: nothing; but where the same transaction then moves another row away
               from the key, as when two rows swap their keys, that row
    update, departure, delete with a before image
               frozen base: the base row. Live base: the before image, and the base row where that does not know a column;
               also for a key that the base has lost since
    others     the base row; of a live base only the key, when an update has no before image
#}
{% macro _rewound_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set carried = given.carried -%}
{%- set is_live = given.base.kind == 'live' -%}
{%- set values = _without(given.columns, key) -%}
{%- set partition = _listed(key) | replace('\n        ', ' ') -%}
{%- set has_displaced = is_live and given.has_moves -%}
{%- if has_displaced -%}
{%- set compared = _without(values, carried) -%}
{%- set image = 'struct(' ~ (_listed(compared) | replace('\n        ', ' ') if compared else 'true') ~ ')' -%}
{%- set before_image = 'struct(' ~ (_listed(compared, 'before.') | replace('\n        ', ' ') if compared else 'true') ~ ')' -%}
-- a load, or a truncate, concerns every key: what comes after it says nothing about the load before
dated_touches as (
    select
        {{ touches }}.*,
        {{ _move_group(touches ~ '.') }} as _move_group,
        size(filter(_closers._loads, _load -> _load.change_seq <= {{ touches }}.change_seq))
        + size(filter(_closers._truncates, _truncate -> _truncate <= {{ touches }}.change_seq)) as _era
    from {{ touches }}
    cross join _closers
),

grouped_touches as (
    select
        *,
        lead(_kind) over (partition by {{ partition }}, _era order by change_seq, _touch_rank) as _next_kind_of_key,
        count_if(_kind = 'L') over (partition by {{ partition }}, _era) > 0 as _is_in_base
    from dated_touches
),

transactions as (
    select
        *,
        collect_list(case when _kind in ('K', 'I', 'U') then {{ image }} end) over (
            partition by {{ partition }}, _era, _move_group order by change_seq, _touch_rank
            rows between unbounded preceding and 1 preceding
        ) as _brought,
        count_if(_kind in ('K', 'I')) over (partition by {{ partition }}, _era, _move_group)
        - count_if(_kind in ('X', 'D')) over (partition by {{ partition }}, _era, _move_group) as _net,
        last_value(_next_kind_of_key) over (
            partition by {{ partition }}, _era, _move_group order by change_seq, _touch_rank
            rows between unbounded preceding and unbounded following
        ) as _kind_after
    from grouped_touches
),

-- departures of a row that the transaction did not bring: it differs from what was brought, or the key was not empty after
displacements as (
    select
        *,
        case
            when
                _kind = 'X'
                and (
                    not array_contains(_brought, {{ before_image }})
                    or _net < 0
                    or (_net = 0 and coalesce(_kind_after in ('U', 'X', 'D'), _is_in_base))
                )
                then struct(
                    _move_group as _move_group,
                    before as before,
                    before_known_columns as before_known_columns
                )
        end as _displaced
    from transactions
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
            partition by {{ _listed(key, touches ~ '.') | replace('\n        ', ' ') }}
            order by {{ touches }}.change_seq, {{ touches }}._touch_rank
            rows between 1 following and unbounded following
        ) as _next_displaced,
        {%- endif %}
        try_element_at(filter(_closers._loads, _load -> _load.change_seq <= {{ touches }}.change_seq), -1) as _load,
        try_element_at(filter(_closers._loads, _load -> _load.change_seq > {{ touches }}.change_seq), 1) as _next_load,
        _closers._truncates
    from {{ touches }}
    cross join _closers
    window by_key as (
        partition by {{ _listed(key, touches ~ '.') | replace('\n        ', ' ') }}
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
                -- a truncate in between is the first change of every key
                and not exists(
                    _truncates, truncate -> truncate > neighbours.change_seq and truncate <= _next_seq
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
        {{ _listed(key) }},
        {%- for name in values %}
        case
            when _is_lost then _lost_row.before.{{ _quoted(name) }}
            when
                _at_load is not null
                {%- if name in carried %}
                {#- what the before image does not know is taken from the base row (decision 7) #}
                and (
                    _at_load.before_known_columns is null
                    or array_contains(_at_load.before_known_columns, {{ _text(name) }})
                )
                {%- endif %}
                then _at_load.before.{{ _quoted(name) }}
            else {{ _quoted(name) }}
        end as {{ _quoted(name) }},
        {%- endfor %}
        _side as _kind,
        if(_side = 'L', 1, _touch_rank) as _touch_rank,
        if(_is_lost, _load.change_seq, change_seq) as change_seq,
        if(_is_lost, coalesce(_load.changed_at, {{ _beginning_of_time() }}), changed_at) as changed_at,
        if(_is_lost, null, transaction_id) as transaction_id,
        {%- for name in given.metadata %}
        if(_is_lost, null, {{ name }}) as {{ name }},
        {%- endfor %}
        {%- for name in _columns_of_some_touches(given) %}
        {{ name }},
        {%- endfor %}
        case
            when _is_lost then _lost_row.before_known_columns
            when _is_blind then array({{ _texts(key) }})
            when _at_load.before_known_columns is not null
                then array_union(known_columns, _at_load.before_known_columns)
            when _at_load is not null then null
            else known_columns
        end as known_columns
    from sides
    {%- else %}
    select
        {{ _listed(key + values) }},
        _kind,
        _touch_rank,
        change_seq,
        changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- for name in _columns_of_some_touches(given) %}
        {{ name }},
        {%- endfor %}
        known_columns
    from first_changes
    where coalesce(_first_change <> 'I', true)
    {%- endif %}
),
{%- endmacro %}
