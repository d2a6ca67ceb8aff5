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
      keys          subquery of the affected keys, or none for all
      seeds         subquery of open history rows, or none
      columns       names of the data columns
      key, tracked  names of columns
      carried       columns that some change does not know (R9)
      base          settings of the full load, or none; only with loads in `changes`
      has_closers   whether truncates or loads are among the changes
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
{%- set beginning = "timestamp'" ~ var('beginning_of_time') ~ "'" -%}
{%- set is_live = given.base and given.base.kind == 'live' -%}
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
        before is not null and not ({{ _equal(key, 'before', 'changes') }}) as is_move
    from changes
    where change_oper <> 'T' and load_rows is null
),

touches as (
    select
        {%- for name in key %}
        case when kind = 'X' then before.{{ _quoted(name) }} else {{ _quoted(name) }} end as {{ _quoted(name) }},
        {%- endfor %}
        kind,
        case kind when 'L' then 1 when 'I' then 2 when 'D' then 4 else 3 end as touch_rank,
        change_seq,
        {#- a load whose time is not known begins at the beginning of time (R8) #}
        case when kind = 'L' then coalesce(changed_at, {{ beginning }}) else changed_at end as changed_at,
        transaction_id,
        known_columns,
        {%- if is_live or (carried and given.has_moves) %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
    from moves
    lateral view explode(
        case when is_move then array('X', 'K') else array(change_oper) end
    ) sides as kind
    {%- if given.seeds %}
    union all
    select
        {{ _listed(key) }},
        'S' as kind,
        0 as touch_rank,
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
    from ({{ given.seeds }})
    {%- endif %}
),
{%- set touches = 'touches' %}
{%- if given.keys %}

affected_touches as (
    select touches.*
    from touches
    left semi join ({{ given.keys }}) as affected
        on {{ _equal(key, 'touches', 'affected', '=') }}
),
{%- set touches = 'affected_touches' %}
{%- endif %}
{%- if given.has_closers %}

-- truncates, and the markers of loads, which end what they do not hold (R6, R8)
closers as (
    select
        coalesce(
            array_sort(collect_list(struct(change_seq, change_oper, changed_at))), array()
        ) as closers,
        coalesce(
            array_sort(
                collect_list(case when change_oper = 'L' then struct(change_seq, changed_at) end)
            ),
            array()
        ) as loads,
        array_sort(collect_list(case when change_oper = 'T' then change_seq end)) as truncates
    from changes
    where change_oper = 'T' or load_rows is not null
),
{%- endif %}
{%- if given.base and given.has_closers %}

-- the base table as it was at the time of the load: what came after is taken back (R8)
neighbours as (
    select
        {{ touches }}.*,
        lag(change_seq) over by_key as previous_seq,
        lead(change_seq) over by_key as next_seq,
        lead(kind) over by_key as next_kind,
        {%- if is_live %}
        lead(before) over by_key as next_before,
        lead(before_known_columns) over by_key as next_before_known_columns,
        {%- endif %}
        element_at(filter(closers.loads, load -> load.change_seq <= {{ touches }}.change_seq), -1) as load,
        element_at(filter(closers.loads, load -> load.change_seq > {{ touches }}.change_seq), 1) as next_load,
        closers.truncates
    from {{ touches }}
    cross join closers
    window by_key as (partition by {{ partition }} order by change_seq, touch_rank)
),

first_changes as (
    select
        *,
        -- the first change of the key after this load, if it came before the next load
        case
            when
                kind = 'L'
                and next_kind <> 'L'
                and (next_load is null or next_seq < next_load.change_seq)
                -- a truncate in between is the first change of every key
                and not exists(
                    truncates, truncate -> truncate > neighbours.change_seq and truncate <= next_seq
                )
                then next_kind
        end as first_change,
        {%- if is_live %}
        -- the base has lost this row since; its state at the load is the before image
        load is not null
        and kind in ('U', 'X')
        and before is not null
        and coalesce(previous_seq < load.change_seq, true) as is_lost_row
        {%- else %}
        false as is_lost_row
        {%- endif %}
    from neighbours
),

rewound as (
    select
        {{ _listed(key) }},
        side as kind,
        case when side = 'L' then 1 else touch_rank end as touch_rank,
        case when is_lost_row and side = 'L' then load.change_seq else change_seq end as change_seq,
        case
            when is_lost_row and side = 'L' then coalesce(load.changed_at, {{ beginning }})
            else changed_at
        end as changed_at,
        case when is_lost_row and side = 'L' then null else transaction_id end as transaction_id,
        {%- if is_live %}
        case
            when is_lost_row and side = 'L' then before_known_columns
            when first_change in ('U', 'X') and next_before is null then array({{ _texts(key) }})
            when first_change in ('U', 'X') then next_before_known_columns
            else known_columns
        end as known_columns,
        {%- if carried and given.has_moves %}
        before,
        before_known_columns,
        {%- endif %}
        {%- for name in _without(columns, key) %}
        case
            when is_lost_row and side = 'L' then before.{{ _quoted(name) }}
            when first_change in ('U', 'X') then next_before.{{ _quoted(name) }}
            else {{ _quoted(name) }}
        end as {{ _quoted(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
        {%- else %}
        known_columns,
        {%- if carried and given.has_moves %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
        {%- endif %}
    from first_changes
    lateral view explode(
        case when is_lost_row then array('L', kind) else array(kind) end
    ) sides as side
    {%- if is_live %}
    where coalesce(first_change not in ('I', 'K'), true)
    {%- else %}
    where coalesce(first_change <> 'I', true)
    {%- endif %}
),
{%- set touches = 'rewound' %}
{%- endif %}
{%- if given.has_closers %}

-- the first truncate, or load without this key, after a touch and before the next one
neighbouring_touches as (
    select
        {{ touches }}.*,
        lead(change_seq) over by_key as next_touch_seq,
        lead(kind) over by_key as next_touch_kind
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, touch_rank)
),

ends as (
    select
        neighbouring_touches.*,
        case
            when kind in {{ upserts }}
                then element_at(
                    filter(
                        closers.closers,
                        closer -> closer.change_seq > neighbouring_touches.change_seq
                        and (
                            next_touch_seq is null
                            or closer.change_seq < next_touch_seq
                            or (
                                closer.change_seq = next_touch_seq
                                and not (closer.change_oper = 'L' and next_touch_kind = 'L')
                            )
                        )
                    ),
                    1
                )
        end as closer
    from neighbouring_touches
    cross join closers
),

closed_touches as (
    select
        {{ _listed(key) }},
        case when is_end then if(closer.change_oper = 'T', 'T', 'R') else kind end as kind,
        case when is_end then 0 else touch_rank end as touch_rank,
        case when is_end then closer.change_seq else change_seq end as change_seq,
        case when is_end then closer.changed_at else changed_at end as changed_at,
        transaction_id,
        known_columns,
        {%- if carried and given.has_moves %}
        before,
        before_known_columns,
        {%- endif %}
        {{ _listed(_without(columns, key)) }}
    from ends
    lateral view explode(
        case when closer is null then array(false) else array(false, true) end
    ) sides as is_end
),
{%- set touches = 'closed_touches' %}
{%- endif %}
{%- if given.has_moves %}

-- one transaction may permute keys: a departure of a row that the same transaction displaced closes nothing (R7)
move_touches as (
    select
        {{ touches }}.*,
        coalesce(transaction_id, concat('at ', changed_at)) as move_group
    from {{ touches }}
),

permuted_keys as (
    select distinct {{ partition }}
    from move_touches
    where kind in ('K', 'X')
    group by {{ partition }}, move_group
    having count(distinct kind) = 2
),

skipped as (
    select
        {{ partition }},
        explode(
            aggregate(
                array_sort(collect_list(struct(change_seq, touch_rank, kind, move_group))),
                named_struct(
                    'is_open', false,
                    'move_group', cast(null as string),
                    'displaced', 0,
                    'skipped', cast(array() as array<string>)
                ),
                (state, touch) -> named_struct(
                    'is_open',
                    touch.kind in {{ upserts }}
                    or touch.kind = 'X'
                    and state.is_open
                    and state.displaced > 0
                    and state.move_group <=> touch.move_group,
                    'move_group', if(touch.kind = 'K', touch.move_group, state.move_group),
                    'displaced',
                    case
                        when touch.kind = 'K'
                            then if(state.move_group <=> touch.move_group, state.displaced, 0)
                                + if(state.is_open, 1, 0)
                        when touch.kind = 'X' and state.displaced > 0 and state.move_group <=> touch.move_group
                            then state.displaced - 1
                        else state.displaced
                    end,
                    'skipped',
                    if(
                        touch.kind = 'X' and state.displaced > 0 and state.move_group <=> touch.move_group,
                        concat(state.skipped, array(touch.change_seq)),
                        state.skipped
                    )
                ),
                state -> state.skipped
            )
        ) as change_seq
    from move_touches
    left semi join permuted_keys using ({{ partition }})
    group by {{ partition }}
),

kept_touches as (
    select {{ touches }}.*
    from {{ touches }}
    left anti join skipped
        on
            {{ _equal(key, touches, 'skipped', '=') }}
            and {{ touches }}.change_seq = skipped.change_seq
            and {{ touches }}.kind = 'X'
),
{%- set touches = 'kept_touches' %}
{%- endif %}

-- of several touches at one change_seq the last one counts: no version is empty (R1)
effective as (
    select
        *,
        lead(change_seq) over by_key as next_seq
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, touch_rank)
),

remaining as (
    select *
    from effective
    where kind not in {{ upserts }} or next_seq is null or next_seq <> change_seq
),
{%- set touches = 'remaining' %}
{%- if carried %}

-- what a change does not know is carried forward, but never over a gap (R9)
segments as (
    select
        *,
        coalesce(
            sum(case when kind not in {{ upserts }} then 1 else 0 end) over (
                partition by {{ partition }} order by change_seq, touch_rank
                rows between unbounded preceding and 1 preceding
            ),
            0
        )
        + sum(case when kind = 'K' then 1 else 0 end) over (
            partition by {{ partition }} order by change_seq, touch_rank
            rows between unbounded preceding and current row
        ) as segment
    from remaining
),

carried as (
    select
        * except ({{ _listed(carried) }}),
        {%- for name in carried %}
        last_value(
            case
                when kind not in {{ upserts }} then null
                when known_columns is null or array_contains(known_columns, '{{ name }}')
                    then struct({{ _quoted(name) }} as value)
                {%- if given.has_moves %}
                when kind = 'K' and (before_known_columns is null or array_contains(before_known_columns, '{{ name }}'))
                    then struct(before.{{ _quoted(name) }} as value)
                {%- endif %}
            end,
            true
        ) over by_segment as carried_{{ loop.index }}{{ ',' if not loop.last }}
        {%- endfor %}
    from segments
    window by_segment as (
        partition by {{ partition }}, segment order by change_seq, touch_rank
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
                case when carried_{{ loop.index }} is null then '{{ name }}' end{{ ',' if not loop.last }}
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
        (lag(kind) over by_key) in {{ upserts }} as was_open,
        {%- if carried %}
        lag(unknown_columns) over by_key as previous_unknown_columns,
        {%- endif %}
        lag(struct({{ _listed(tracked) | replace('\n        ', ' ') }})) over by_key as previous
    from {{ touches }}
    window by_key as (partition by {{ partition }} order by change_seq, touch_rank)
),

boundaries as (
    select
        *,
        kind in {{ upserts }}
        and (
            not coalesce(was_open, false)
            or kind = 'K'
            {%- if carried %}
            or {{ _differs_somewhere(tracked, carried) }}
            {%- else %}
            or not (previous <=> struct({{ _listed(tracked) | replace('\n        ', ' ') }}))
            {%- endif %}
        ) as is_opening,
        kind not in {{ upserts }} and coalesce(was_open, false) as is_closing
    from compared
),
{%- set touches = 'boundaries' %}
{%- if untracked %}

numbered as (
    select
        *,
        sum(if(is_opening, 1, 0)) over (
            partition by {{ partition }} order by change_seq, touch_rank
        ) as version_number
    from boundaries
),

-- an update without a tracked difference writes into the open version: the last value counts (R4)
updated as (
    select
        * except ({{ _listed(untracked + (['unknown_columns'] if carried else [])) | replace('\n        ', ' ') }}),
        last_value(
            case
                when kind in {{ upserts }}
                    then struct(
                        {{ _listed(untracked + (['unknown_columns'] if carried else []), indent=24) }}
                    )
            end,
            true
        ) over (
            partition by {{ partition }}, version_number order by change_seq, touch_rank
            rows between unbounded preceding and unbounded following
        ) as latest,
        struct({{ _listed(untracked + (['unknown_columns'] if carried else [])) | replace('\n        ', ' ') }}) as own
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
                partition by {{ partition }} order by change_seq, touch_rank
                rows between unbounded preceding and current row
            ),
            {{ beginning }}
        ) as boundary_at
    from {{ touches }}
    where is_opening or is_closing
),

intervals as (
    select
        *,
        lead(boundary_at) over by_key as valid_to,
        lead(change_seq) over by_key as valid_to_seq,
        lead(kind) over by_key as closing_kind
    from timed
    window by_key as (partition by {{ partition }} order by change_seq, touch_rank)
),

versions as (
    select
        {{ _history_id(key) }} as history_id,
        {{ _listed(key) }},
        boundary_at as valid_from,
        valid_to,
        change_seq as valid_from_seq,
        valid_to_seq,
        valid_to_seq is null as is_current,
        kind as opened_by,
        case
            when closing_kind in ('I', 'L', 'U') then 'U'
            when closing_kind in ('K', 'X') then 'K'
            else closing_kind
        end as closed_by,
        transaction_id,
        case
            when was_open
                then array_compact(array(
                    {%- for name in tracked %}
                    case when not (previous.{{ _quoted(name) }} <=> {{ _quoted(name) if name not in untracked else 'own.' ~ _quoted(name) }}) then '{{ name }}' end{{ ',' if not loop.last }}
                    {%- endfor %}
                ))
        end as changed_columns,
        {{ 'latest.unknown_columns' if carried else 'cast(null as array<string>)' }} as unknown_columns,
        {%- for name in _without(columns, key) %}
        {{ 'latest.' if name in untracked }}{{ _quoted(name) }}{{ ' as ' ~ _quoted(name) if name in untracked }},
        {%- endfor %}
        {%- if given.seeds %}
        {{ "not (own <=> latest)" if untracked else 'false' }} as is_updated_in_place,
        {%- endif %}
        kind = 'S' as is_seed
    from intervals
    where is_opening
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
        {%- do parts.append("'" ~ name | replace("\\", "\\\\") | replace("'", "\\'") ~ "'") -%}
    {%- endfor -%}
    {{ return(parts | join(', ')) }}
{% endmacro %}


{# True where a tracked column differs from the version before; what was unknown and becomes known does not (R9). #}
{% macro _differs_somewhere(tracked, carried) %}
    {%- set parts = ['false'] -%}
    {%- for name in tracked -%}
        {%- set differs = "not (previous." ~ _quoted(name) ~ " <=> " ~ _quoted(name) ~ ")" -%}
        {%- if name in carried -%}
            {%- set differs = differs ~ " and not coalesce(array_contains(previous_unknown_columns, '" ~ name ~ "'), false)" -%}
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
