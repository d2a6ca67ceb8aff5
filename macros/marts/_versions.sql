{#
    The versions of a table's rows, from changes: the rules of history as one chain of CTEs over one sort per key.

    Each change becomes a touch of one key (a key change touches two). kinds: S the version that was open already,
    L load, I insert, U update, K arrival by a key change, X departure by a key change, D delete, T truncate,
    R missing from a load. S, L, I, U, K leave the key open, the others leave it closed.

    All paths use it. Narrow: `touches` are the batch, `seeds` the open versions of its keys. Wide: `touches` are the
    keys' changes from their first one in the batch on, `seeds` the versions that stood then. Full refresh and what those
    two cannot do: `touches` are the whole log, without seeds.

    Arguments (a dict `given`):
      changes       what stands after FROM for change log rows, markers and truncates included; with the alias `changes`
      where         condition on them, or none
      affected_keys select of the affected keys, or none for all
      seeds         select of history rows, or none; may read `affected_keys`. They are the versions that stood before the
                    touches; how they began, which touches do not tell, goes along in `_stood`
      stored        name of the stored versions that may change, `seeds` among them, where they are kept; or none
      columns       names of the data columns
      key, tracked  names of columns
      metadata      columns of the log, besides transaction_id, that a version takes from the change that opened it
      carried       columns that some change does not know (R9)
      base          settings of the full load, or none; only with loads in `changes`
      has_ends      whether truncates, or a load after other changes, are among them
      has_moves     whether key changes are among them
      has_incomplete_key_changes  whether some of those leave columns out of both images, see `_carries_lives`
      scopes        columns that some truncate names in its scope
      has_few_keys  whether `affected_keys` are known to be so few that they can be sent to every task
      replays       whether keys are rebuilt from `_from_seq` on, a column of `affected_keys`: NULL for the whole log.
                    `seeds` are then the versions that stood there, and have that column too
#}
{% macro _versions(given) -%}
{%- set key = given.key -%}
{%- set columns = given.columns -%}
{%- set tracked = given.tracked -%}
{%- set carried = given.carried -%}
{%- set values = afterimage._without(columns, key) -%}
{%- set untracked = [] -%}
{%- for name in values if name not in tracked or name in carried -%}
    {%- do untracked.append(name) -%}
{%- endfor -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set upserts = afterimage._upserts() -%}
{%- set beginning = afterimage._beginning_of_time() -%}
{%- set state = 'struct(_row as _row' ~ (', unknown_columns as unknown_columns' if carried else '') ~ ')' -%}
{%- set keeps_before = afterimage._keeps_before(given) -%}
with{{ ' recursive' if afterimage._carries_lives(given) }}

{% if given.affected_keys -%}
affected_keys as (
    {{ given.affected_keys }}
),

{% endif -%}
{% if given.seeds -%}
seeds as (
    {{ given.seeds }}
),

{% endif -%}
changes as (
    select changes.*
    from {{ given.changes | indent }}
    {%- if given.where %}
    where {{ given.where }}
    {%- endif %}
),

-- a key change is a departure from the old key and an arrival at the new one (R7)
moves as (
    select
        *,
        {{ afterimage._is_key_change(key) }} as _is_move
    from changes
    where change_oper <> 'T' and load_rows is null
),

touches as (
    select
        {%- for name in key %}
        case when _kind = 'X' then before.{{ afterimage._quoted(name) }} else {{ afterimage._quoted(name) }} end as {{ afterimage._quoted(name) }},
        {%- endfor %}
        {%- for name in afterimage._without(columns, key) %}
        {{ afterimage._quoted(name) }},
        {%- endfor %}
        _kind,
        case _kind when 'L' then 1 when 'I' then 2 when 'D' then 4 else 3 end as _touch_rank,
        change_seq,
        {#- a load whose time is not known begins at the beginning of time (R8) #}
        case when _kind = 'L' then coalesce(changed_at, {{ beginning }}) else changed_at end as changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- if given.replays %}
        cast(null as string) as _from_seq,
        {%- endif %}
        {%- if keeps_before %}
        before,
        before_known_columns,
        {%- endif %}
        {%- if given.seeds %}
        cast(null as struct<opened_by: string, changed_columns: array<string>>) as _stood,
        {%- endif %}
        known_columns
    from moves
        lateral view explode(
            {{ "case when _is_move then array('X', 'K') else array(change_oper) end" if given.has_moves else "array(change_oper)" }}
        ) sides as _kind
    {%- if given.seeds %}
    union all
    select
        {{ afterimage._listed(key + afterimage._without(columns, key)) }},
        'S' as _kind,
        0 as _touch_rank,
        valid_from_seq as change_seq,
        valid_from as changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- if given.replays %}
        _from_seq,
        {%- endif %}
        {%- if keeps_before %}
        null as before,
        null as before_known_columns,
        {%- endif %}
        struct(opened_by as opened_by, changed_columns as changed_columns) as _stood,
        case
            when unknown_columns is not null
                then array_except(array({{ afterimage._texts(columns) }}), unknown_columns)
        end as known_columns
    from seeds
    {%- endif %}
),
{%- set touches = 'touches' %}
{%- if given.affected_keys and (given.replays or not given.seeds) %}

affected_touches as (
    select{{ afterimage._few_keys_hint(given) }} touches.*
    from touches
    left semi join affected_keys
        on
            {{ afterimage._equal(key, 'touches', 'affected_keys', '=', indent=12) }}
            {%- if given.replays %}
            and (
                touches._kind = 'S'
                or affected_keys._from_seq is null
                or touches.change_seq >= affected_keys._from_seq
            )
            {%- endif %}
),
{%- set touches = 'affected_touches' %}
{%- endif %}
{%- if given.base or given.has_ends %}

{{ afterimage._closers(given) }}
{%- endif %}
{%- if given.base %}

{{ afterimage._rewound_touches(given, touches) }}
{%- set touches = 'rewound' %}
{%- endif %}
{%- if given.has_ends %}

{{ afterimage._ended_touches(given, touches) }}
{%- set touches = 'closed_touches' %}
{%- endif %}
{%- if given.has_moves %}

{{ afterimage._permuted_touches(given, touches) }}
{%- set touches = 'kept_touches' %}
{%- endif %}
{%- if carried %}

{{ afterimage._carried_touches(given, touches) }}
{%- set touches = 'filled' %}
{%- endif %}

-- from here on the values go along as one: many columns would make each step below as long as the table is wide
packed as (
    select
        {{ afterimage._listed(key) }},
        _kind,
        _touch_rank,
        change_seq,
        changed_at,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        {%- if given.seeds %}
        _stood,
        {%- endif %}
        {%- if carried %}
        unknown_columns,
        {%- endif %}
        struct({{ afterimage._listed(values) | replace('\n        ', ' ') if values else 'true' }}) as _row
    from {{ touches }}
),

-- of several touches at one change_seq the last one counts, no version is empty; the first one tells what opened it (R1)
effective as (
    select
        *,
        lead(change_seq) over by_key as _next_seq,
        case
            when lag(change_seq) over by_key = change_seq and lag(_kind) over by_key in {{ upserts }}
                then lag(_kind) over by_key
            else _kind
        end as _first_kind
    from packed
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

remaining as (
    select *
    from effective
    where _kind not in {{ upserts }} or _next_seq is null or _next_seq <> change_seq
),

compared as (
    select
        *,
        (lag(_kind) over by_key) in {{ upserts }} as _was_open,
        {%- if carried %}
        lag(unknown_columns) over by_key as _previous_unknown_columns,
        {%- endif %}
        lag(_row) over by_key as _previous
    from remaining
    window by_key as (partition by {{ partition }} order by change_seq, _touch_rank)
),

boundaries as (
    select
        *,
        _kind in {{ upserts }}
        and (
            not coalesce(_was_open, false)
            or _kind = 'K'
            {%- if untracked %}
            or {{ afterimage._differs_somewhere(tracked, carried) }}
            {%- else %}
            or not (_previous <=> _row)
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
        *,
        last_value(
            case when _kind in {{ upserts }} then {{ state }} end,
            true
        ) over (
            partition by {{ partition }}, _version_number order by change_seq, _touch_rank
            rows between unbounded preceding and unbounded following
        ) as _latest
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
        {{ afterimage._history_id(key) }} as _version_id,
        {{ afterimage._listed(key) }},
        _boundary_at as valid_from,
        valid_to,
        change_seq as valid_from_seq,
        valid_to_seq,
        valid_to_seq is null as is_current,
        {{ 'coalesce(_stood.opened_by, _first_kind)' if given.seeds else '_first_kind' }} as opened_by,
        case
            when _closing_kind in ('I', 'L', 'U') then 'U'
            when _closing_kind in ('K', 'X') then 'K'
            else _closing_kind
        end as closed_by,
        transaction_id,
        {%- for name in given.metadata %}
        {{ name }},
        {%- endfor %}
        case
            {%- if given.seeds %}
            when _kind = 'S' then _stood.changed_columns
            {%- endif %}
            when _was_open
                {%- if tracked %}
                then array_compact(array(
                    {%- for name in tracked %}
                    {%- set old, new = '_previous.' ~ afterimage._quoted(name), '_row.' ~ afterimage._quoted(name) %}
                    case when not ({{ old }} <=> {{ new }}) then {{ afterimage._text(name) }} end{{ ',' if not loop.last }}
                    {%- endfor %}
                ))
                {%- else %}
                then cast(array() as array<string>)
                {%- endif %}
        end as changed_columns,
        {{ '_latest.unknown_columns' if carried else 'cast(null as array<string>) as unknown_columns' }},
        {%- for name in values %}
        {{ '_latest.' if name in untracked }}_row.{{ afterimage._quoted(name) }},
        {%- endfor %}
        {%- if given.seeds %}
        {{ 'if(_latest <=> ' ~ state ~ ', false, true)' if untracked else 'false' }} as _is_updated_in_place,
        {%- endif %}
        _kind = 'S' as _is_seed
    from intervals
    where _is_opening
)
{%- endmacro %}


{#
    A hint that spares a shuffle of what is joined to `affected_keys`, by sending them to every task. Spark guesses their
    number from that of all rows they were made from.
#}
{% macro _few_keys_hint(given) %}
    {{- return(' /*+ broadcast(affected_keys) */' if given.has_few_keys else '') -}}
{% endmacro %}


{# The kinds of touches that leave a key open. #}
{% macro _upserts() %}
    {{- return("('S', 'L', 'I', 'U', 'K')") -}}
{% endmacro %}


{# Whether before images are looked at after a change became touches: by loads (R8), and by unknown columns (R9). #}
{% macro _keeps_before(given) %}
    {{ return((given.base and given.base.kind == 'live') or (given.carried and given.has_moves)) }}
{% endmacro %}


{# What touches hold beyond their values, place and time, where a later step asks for it: every step has to pass it on. #}
{% macro _columns_of_some_touches(given) %}
    {{ return(
        (['_from_seq'] if given.replays else [])
        + (['before', 'before_known_columns'] if afterimage._keeps_before(given) else [])
        + (['_stood'] if given.seeds else [])
    ) }}
{% endmacro %}


{# valid_from of a load whose time is not known (R8). #}
{% macro _beginning_of_time() %}
    {{- return("timestamp '" ~ afterimage._var('beginning_of_time') ~ "'") -}}
{% endmacro %}


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
        {%- do parts.append(afterimage._text(name)) -%}
    {%- endfor -%}
    {{ return(parts | join(', ')) }}
{% endmacro %}


{# True where a tracked column differs from the version before; what was unknown and becomes known does not (R9). #}
{% macro _differs_somewhere(tracked, carried) %}
    {%- set parts = ['false'] -%}
    {%- for name in tracked -%}
        {%- set differs = "not (_previous." ~ afterimage._quoted(name) ~ " <=> _row." ~ afterimage._quoted(name) ~ ")" -%}
        {%- if name in carried -%}
            {%- set differs = differs ~ " and not coalesce(array_contains(_previous_unknown_columns, " ~ afterimage._text(name) ~ "), false)" -%}
        {%- endif -%}
        {%- do parts.append(differs) -%}
    {%- endfor -%}
    {{ return(parts | join('\n            or ')) }}
{% endmacro %}


{# Surrogate key of a version: lengths before values, so that no two keys run together. #}
{% macro _history_id(key) %}
    {%- set parts = [] -%}
    {%- for name in key -%}
        {%- set text = 'cast(' ~ afterimage._quoted(name) ~ ' as string)' -%}
        {%- do parts.append("length(" ~ text ~ "), ':', " ~ text) -%}
    {%- endfor -%}
    {{ return("md5(concat(" ~ parts | join(', ') ~ ", ':', change_seq))") }}
{% endmacro %}
