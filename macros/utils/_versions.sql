{#
    The versions of a table's rows, from changes: the rules of history as one chain of CTEs over one sort per key.

    Each change becomes a touch of one key (a key change touches two). kinds: S the version that was open already,
    L load, I insert, U update, K arrival by a key change, X departure by a key change, D delete, T truncate,
    R missing from a load. S, L, I, U, K leave the key open, the others leave it closed.

    Both paths use it. Narrow: `touches` are the batch, `seeds` the open versions of its keys. Wide and full
    refresh: `touches` are the whole log of the keys, without seeds.

    Arguments (a dict `given`):
      changes       relation or subquery of change log rows, markers and truncates included
      where         condition on them, or none
      affected_keys select of the affected keys, or none for all
      seeds         select of open history rows, or none; may read `affected_keys`
      columns       names of the data columns
      key, tracked  names of columns
      carried       columns that some change does not know (R9)
      base          settings of the full load, or none; only with loads in `changes`
      has_ends      whether truncates, or a load after other changes, are among them
      has_moves     whether key changes are among them
#}
{% macro _versions(given) -%}
{%- set key = given.key -%}
{%- set columns = given.columns -%}
{%- set tracked = given.tracked -%}
{%- set carried = given.carried -%}
{%- set untracked = [] -%}
{%- for name in columns if name not in key and (name not in tracked or name in carried) -%}
    {%- do untracked.append(name) -%}
{%- endfor -%}
{%- set partition = _listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = "('S', 'L', 'I', 'U', 'K')" -%}
{%- set beginning = "timestamp '" ~ var('beginning_of_time') ~ "'" -%}
{%- set is_live = given.base and given.base.kind == 'live' -%}
{%- if given.affected_keys -%}
affected_keys as (
    {{ given.affected_keys }}
),

{% endif -%}
{%- if given.seeds -%}
seeds as (
    {{ given.seeds }}
),

{% endif -%}
changes as (
    select *
    from {{ given.changes }}
    {%- if given.where %}
    where {{ given.where }}
    {%- endif %}
),

-- a key change is a departure from the old key and an arrival at the new one (R7)
moves as (
    select
        *,
        before is not null and not ({{ _equal(key, 'before', 'changes') }}) as _is_move
    from changes
    where change_oper <> 'T' and load_rows is null
),

touches as (
    select
        {%- for name in key %}
        case when _kind = 'X' then before.{{ _quoted(name) }} else {{ _quoted(name) }} end as {{ _quoted(name) }},
        {%- endfor %}
        _kind,
        case _kind when 'L' then 1 when 'I' then 2 when 'D' then 4 else 3 end as _touch_rank,
        change_seq,
        {#- a load whose time is not known begins at the beginning of time (R8) #}
        case when _kind = 'L' then coalesce(changed_at, {{ beginning }}) else changed_at end as changed_at,
        transaction_id,
        known_columns,
        {%- if is_live or (carried and given.has_moves) %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
    from moves
        lateral view explode(
            {{ "case when _is_move then array('X', 'K') else array(change_oper) end" if given.has_moves else "array(change_oper)" }}
        ) sides as _kind
    {%- if given.seeds %}
    union all
    select
        {{ _listed(key) }},
        'S' as _kind,
        0 as _touch_rank,
        valid_from_seq as change_seq,
        valid_from as changed_at,
        transaction_id,
        case
            when unknown_columns is not null
                then array_except(array({{ _texts(columns) }}), unknown_columns)
        end as known_columns,
        {%- if carried and given.has_moves %}
        null as before,
        null as before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
    from seeds
    {%- endif %}
),
{%- set touches = 'touches' %}
{%- if given.affected_keys and not given.seeds %}

affected_touches as (
    select touches.*
    from touches
    left semi join affected_keys
        on {{ _equal(key, 'touches', 'affected_keys', '=') }}
),
{%- set touches = 'affected_touches' %}
{%- endif %}
{%- if given.base or given.has_ends %}

-- truncates, and the markers of loads, which end what they do not hold (R6, R8)
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
{%- endif %}
{%- if given.base %}

-- the base table as it was at the time of the load: what came after is taken back (R8)
neighbours as (
    select
        {{ touches }}.*,
        lag({{ touches }}.change_seq) over by_key as _previous_seq,
        lead({{ touches }}.change_seq) over by_key as _next_seq,
        lead({{ touches }}._kind) over by_key as _next_kind,
        {%- if is_live %}
        lead({{ touches }}.before) over by_key as _next_before,
        lead({{ touches }}.before_known_columns) over by_key as _next_before_known_columns,
        {%- endif %}
        element_at(filter(_closers._loads, _load -> _load.change_seq <= {{ touches }}.change_seq), -1) as _load,
        element_at(filter(_closers._loads, _load -> _load.change_seq > {{ touches }}.change_seq), 1) as _next_load,
        _closers._truncates
    from {{ touches }}
    cross join _closers
    window by_key as (
        partition by {{ _listed(key, touches ~ '.') | replace('\n        ', ' ') }}
        order by {{ touches }}.change_seq, {{ touches }}._touch_rank
    )
),

first_changes as (
    select
        *,
        -- the first change of the key after this load, if it came before the next load
        case
            when
                _kind = 'L'
                and _next_kind <> 'L'
                and (_next_load is null or _next_seq < _next_load.change_seq)
                -- a truncate in between is the first change of every key
                and not exists(
                    _truncates, truncate -> truncate > neighbours.change_seq and truncate <= _next_seq
                )
                then _next_kind
        end as _first_change{{ ',' if is_live }}
        {%- if is_live %}
        -- the base has lost this row since; its state at the load is the before image
        _load is not null
        and _kind in ('U', 'X')
        and before is not null
        and coalesce(_previous_seq < _load.change_seq, true) as _is_lost_row
        {%- endif %}
    from neighbours
),

rewound as (
    {%- if is_live %}
    select
        {{ _listed(key) }},
        _side as _kind,
        case when _side = 'L' then 1 else _touch_rank end as _touch_rank,
        case when _is_lost_row and _side = 'L' then _load.change_seq else change_seq end as change_seq,
        case
            when _is_lost_row and _side = 'L' then coalesce(_load.changed_at, {{ beginning }})
            else changed_at
        end as changed_at,
        case when _is_lost_row and _side = 'L' then null else transaction_id end as transaction_id,
        case
            when _is_lost_row and _side = 'L' then before_known_columns
            when _first_change in ('U', 'X') and _next_before is null then array({{ _texts(key) }})
            when _first_change in ('U', 'X') and _next_before_known_columns is not null
                then array_union(known_columns, _next_before_known_columns)
            when _first_change in ('U', 'X') then null
            else known_columns
        end as known_columns,
        {%- if carried and given.has_moves %}
        before,
        before_known_columns,
        {%- endif %}
        {%- for name in _without(columns, key) %}
        case
            when _is_lost_row and _side = 'L' then before.{{ _quoted(name) }}
            when
                _first_change in ('U', 'X')
                {%- if name in carried %}
                {#- what the before image does not know is taken from the base row (decision 7) #}
                and (
                    _next_before_known_columns is null
                    or array_contains(_next_before_known_columns, {{ _text(name) }})
                )
                {%- endif %}
                then _next_before.{{ _quoted(name) }}
            else {{ _quoted(name) }}
        end as {{ _quoted(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    from first_changes
        lateral view explode(
            case when _is_lost_row then array('L', _kind) else array(_kind) end
        ) sides as _side
    where coalesce(_first_change not in ('I', 'K'), true)
    {%- else %}
    select * except (_previous_seq, _next_seq, _next_kind, _load, _next_load, _truncates, _first_change)
    from first_changes
    where coalesce(_first_change <> 'I', true)
    {%- endif %}
),
{%- set touches = 'rewound' %}
{%- endif %}
{%- if given.has_ends %}

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
        {%- if carried and given.has_moves %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
    from ends
        lateral view explode(
            case when _closer is null then array(false) else array(false, true) end
        ) sides as _is_end
),
{%- set touches = 'closed_touches' %}
{%- endif %}
{%- if given.has_moves %}

-- one transaction may permute keys: a departure of a row that the same transaction displaced closes nothing (R7)
move_touches as (
    select
        {{ touches }}.*,
        coalesce(transaction_id, concat('at ', changed_at)) as _move_group
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
{%- set touches = 'kept_touches' %}
{%- endif %}

-- of several touches at one change_seq the last one counts: no version is empty (R1)
effective as (
    select
        *,
        lead(change_seq) over by_key as _next_seq
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

remaining as (
    select *
    from effective
    where _kind not in {{ upserts }} or _next_seq is null or _next_seq <> change_seq
),
{%- set touches = 'remaining' %}
{%- if carried %}

-- what a change does not know is carried forward, but never over a gap (R9)
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
    from remaining
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
{%- set touches = 'filled' %}
{%- endif %}

compared as (
    select
        *,
        (lag(_kind) over by_key) in {{ upserts }} as _was_open,
        {%- if carried %}
        lag(unknown_columns) over by_key as _previous_unknown_columns,
        {%- endif %}
        lag(struct({{ _listed(tracked) | replace('\n        ', ' ') }})) over by_key as _previous
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

boundaries as (
    select
        *,
        _kind in {{ upserts }}
        and (
            not coalesce(_was_open, false)
            or _kind = 'K'
            {%- if carried %}
            or {{ _differs_somewhere(tracked, carried) }}
            {%- else %}
            or not (_previous <=> struct({{ _listed(tracked) | replace('\n        ', ' ') }}))
            {%- endif %}
        ) as _is_opening,
        _kind not in {{ upserts }} and coalesce(_was_open, false) as _is_closing
    from compared
),
{%- set touches = 'boundaries' %}
{%- if untracked %}

numbered as (
    select
        *,
        sum(if(_is_opening, 1, 0)) over (
            partition by {{ partition }} order by change_seq, _touch_rank
        ) as _version_number
    from boundaries
),

-- an update without a tracked difference writes into the open version: the last value counts (R4)
updated as (
    select
        * except ({{ _listed(untracked + (['unknown_columns'] if carried else [])) | replace('\n        ', ' ') }}),
        last_value(
            case
                when _kind in {{ upserts }}
                    then struct(
                        {{ _listed(untracked + (['unknown_columns'] if carried else []), indent=24) }}
                    )
            end,
            true
        ) over (
            partition by {{ partition }}, _version_number order by change_seq, _touch_rank
            rows between unbounded preceding and unbounded following
        ) as _latest,
        struct({{ _listed(untracked + (['unknown_columns'] if carried else [])) | replace('\n        ', ' ') }}) as _own
    from numbered
),
{%- set touches = 'updated' %}
{%- endif %}

-- times never run back along a key, even when clocks did (R10)
timed as (
    select
        *,
        coalesce(
            max(changed_at) over (
                partition by {{ partition }} order by change_seq, _touch_rank
                rows between unbounded preceding and current row
            ),
            {{ beginning }}
        ) as _boundary_at
    from {{ touches }}
    where _is_opening or _is_closing
),

intervals as (
    select
        *,
        lead(_boundary_at) over by_key as valid_to,
        lead(change_seq) over by_key as valid_to_seq,
        lead(_kind) over by_key as _closing_kind
    from timed
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

versions as (
    select
        {{ _history_id(key) }} as _version_id,
        {{ _listed(key) }},
        _boundary_at as valid_from,
        valid_to,
        change_seq as valid_from_seq,
        valid_to_seq,
        valid_to_seq is null as is_current,
        _kind as opened_by,
        case
            when _closing_kind in ('I', 'L', 'U') then 'U'
            when _closing_kind in ('K', 'X') then 'K'
            else _closing_kind
        end as closed_by,
        transaction_id,
        case
            when _was_open
                then array_compact(array(
                    {%- for name in tracked %}
                    {%- set own = '_own.' ~ _quoted(name) if name in untracked else _quoted(name) %}
                    case when not (_previous.{{ _quoted(name) }} <=> {{ own }}) then {{ _text(name) }} end{{ ',' if not loop.last }}
                    {%- endfor %}
                ))
        end as changed_columns,
        {{ '_latest.unknown_columns' if carried else 'cast(null as array<string>) as unknown_columns' }},
        {%- for name in _without(columns, key) %}
        {{ '_latest.' if name in untracked }}{{ _quoted(name) }},
        {%- endfor %}
        {%- if given.seeds %}
        {{ 'case when _own <=> _latest then false else true end' if untracked else 'false' }} as _is_updated_in_place,
        {%- endif %}
        _kind = 'S' as _is_seed
    from intervals
    where _is_opening
)
{%- endmacro %}


{# Names that are not among others, in their order. #}
{% macro _without(names, others) %}
    {%- set rest = [] -%}
    {%- for name in names if name not in others -%}
        {%- do rest.append(name) -%}
    {%- endfor -%}
    {{ return(rest) }}
{% endmacro %}


{# Column names as SQL text literals. #}
{% macro _texts(names) %}
    {%- set parts = [] -%}
    {%- for name in names -%}
        {%- do parts.append(_text(name)) -%}
    {%- endfor -%}
    {{ return(parts | join(', ')) }}
{% endmacro %}


{# True where a tracked column differs from the version before; what was unknown and becomes known does not (R9). #}
{% macro _differs_somewhere(tracked, carried) %}
    {%- set parts = ['false'] -%}
    {%- for name in tracked -%}
        {%- set differs = "not (_previous." ~ _quoted(name) ~ " <=> " ~ _quoted(name) ~ ")" -%}
        {%- if name in carried -%}
            {%- set differs = differs ~ " and not coalesce(array_contains(_previous_unknown_columns, " ~ _text(name) ~ "), false)" -%}
        {%- endif -%}
        {%- do parts.append(differs) -%}
    {%- endfor -%}
    {{ return(parts | join('\n            or ')) }}
{% endmacro %}


{# Surrogate key of a version: lengths before values, so that no two keys run together. #}
{% macro _history_id(key) %}
    {%- set parts = [] -%}
    {%- for name in key -%}
        {%- set text = 'cast(' ~ _quoted(name) ~ ' as string)' -%}
        {%- do parts.append("length(" ~ text ~ "), ':', " ~ text) -%}
    {%- endfor -%}
    {{ return("md5(concat(" ~ parts | join(', ') ~ ", ':', change_seq))") }}
{% endmacro %}
