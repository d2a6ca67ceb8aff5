{#
    CTEs in which what a change does not know is taken from the version before, but never over a gap (R9).
    Reads a CTE of touches; yields `filled`, in which `unknown_columns` takes the place of `known_columns`.

    A value is carried along the life of a row. On one key a life begins with an insert or an arrival and ends with a
    delete or a departure. A row that changes its key takes its values along: where a key change does not know them itself,
    `departures` tells where the row's life on the old key had begun, and a recursion finds where it began at all.
#}
{% macro _carried_touches(given, touches) -%}
{%- set key = given.key -%}
{%- set partition = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set carried = given.carried -%}
{%- set upserts = afterimage._upserts() -%}
{%- set follows_moves = afterimage._carries_lives(given) -%}
beginnings as (
    select
        *,
        _kind = 'K'
        or coalesce(
            lag(_kind) over (partition by {{ partition }} order by change_seq, _touch_rank) not in {{ upserts }}, true
        ) as _begins
    from {{ touches }}
),

lives as (
    select
        *,
        max(case when _begins then change_seq end) over (
            partition by {{ partition }} order by change_seq, _touch_rank
            rows between unbounded preceding and current row
        ) as _began
    from beginnings
),
{%- set touches = 'lives' %}
{%- if follows_moves %}

-- an arrival that needs values, and where the row began on the key that it comes from
arrivals as (
    select
        {{ afterimage._listed(key, 'lives.') }},
        lives.change_seq as _began,
        {%- for name in key %}
        departures.{{ afterimage._quoted(name) }} as _old_{{ loop.index }},
        {%- endfor %}
        departures._began as _old_began
    from lives
    inner join departures
        on
            lives.change_seq = departures.change_seq
            {%- for name in key %}
            and lives.before.{{ afterimage._quoted(name) }} = departures.{{ afterimage._quoted(name) }}
            {%- endfor %}
    where
        lives._kind = 'K'
        and {{ afterimage._is_blind_for(carried, 'lives.') }}
),

origins as (
    select
        {{ afterimage._listed(key, 'arrivals.') }},
        arrivals._began,
        struct(
            {{ afterimage._old_key(key, 'arrivals.') }},
            arrivals._old_began as _began
        ) as _life
    from arrivals
    left anti join arrivals as earlier
        on
            arrivals._old_began = earlier._began
            {%- for name in key %}
            and arrivals._old_{{ loop.index }} = earlier.{{ afterimage._quoted(name) }}
            {%- endfor %}
    union all
    select
        {{ afterimage._listed(key, 'arrivals.') }},
        arrivals._began,
        origins._life
    from origins
    inner join arrivals
        on
            origins._began = arrivals._old_began
            {%- for name in key %}
            and origins.{{ afterimage._quoted(name) }} = arrivals._old_{{ loop.index }}
            {%- endfor %}
),

whole_lives as (
    select
        lives.*,
        coalesce(
            origins._life,
            struct(
                {{ afterimage._listed(key, 'lives.') | replace('\n        ', '\n                ') }},
                lives._began as _began
            )
        ) as _life
    from lives
    left join origins
        on
            {{ afterimage._equal(key, 'lives', 'origins', '=', indent=12) }}
            and lives._began = origins._began
),
{%- set touches = 'whole_lives' %}
{%- endif %}

carried as (
    select
        * except ({{ afterimage._listed(carried) | replace('\n        ', ' ') }}, _begins, _began{{ ', _life' if follows_moves }}),
        {%- for name in carried %}
        last_value(
            case
                when _kind not in {{ upserts }} then null
                when known_columns is null or array_contains(known_columns, {{ afterimage._text(name) }})
                    then struct({{ afterimage._quoted(name) }} as value)
                {%- if given.has_moves %}
                when _kind = 'K' and (before_known_columns is null or array_contains(before_known_columns, {{ afterimage._text(name) }}))
                    then struct(before.{{ afterimage._quoted(name) }} as value)
                {%- endif %}
            end,
            true
        ) over by_life as carried_{{ loop.index }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ touches }}
    window by_life as (
        partition by {{ '_life' if follows_moves else partition ~ ', _began' }} order by change_seq, _touch_rank
        rows between unbounded preceding and current row
    )
),

filled as (
    select
        * except (known_columns),
        {%- for name in carried %}
        carried_{{ loop.index }}.value as {{ afterimage._quoted(name) }},
        {%- endfor %}
        nullif(
            array_compact(array(
                {%- for name in carried %}
                case when carried_{{ loop.index }} is null then {{ afterimage._text(name) }} end{{ ',' if not loop.last }}
                {%- endfor %}
            )),
            array()
        ) as unknown_columns
    from carried
),
{%- endmacro %}


{# Whether values have to be carried from one key to another: a key change leaves a carried column out of both its images. #}
{% macro _carries_lives(given) %}
    {{ return(given.carried and given.has_moves and given.has_incomplete_key_changes) }}
{% endmacro %}


{# True where neither image of an update knows all of some columns. #}
{% macro _is_blind_for(columns, prefix='') %}
    {{- return(
        "size(array_except(array(" ~ afterimage._texts(columns) ~ "), array_union("
        ~ "coalesce(" ~ prefix ~ "known_columns, array(" ~ afterimage._texts(columns) ~ ")), "
        ~ "coalesce(" ~ prefix ~ "before_known_columns, if(" ~ prefix ~ "before is null, array(), array(" ~ afterimage._texts(columns) ~ ")))"
        ~ "))) > 0"
    ) -}}
{% endmacro %}


{# The columns of an old key, under the key's own names. #}
{% macro _old_key(key, prefix) %}
    {%- set parts = [] -%}
    {%- for name in key -%}
        {%- do parts.append(prefix ~ '_old_' ~ loop.index ~ ' as ' ~ afterimage._quoted(name)) -%}
    {%- endfor -%}
    {{ return(parts | join(',\n            ')) }}
{% endmacro %}
