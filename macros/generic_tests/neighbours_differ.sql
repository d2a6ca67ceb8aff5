{#
    Generic test of a history: a version that an update closed goes straight over into one that differs from it.

    Two versions of a key with the same tracked values and nothing in between would be one version that was cut.
    Versions that a delete, truncate, load or key change separates (`closed_by` D, T, R, K) may be equal.

    Arguments:
      key  columns; default: the `key` of the source table's settings
#}
{% test neighbours_differ(model, key=none) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_whole_table('neighbours_differ', model) -%}
    {%- set settings = afterimage._tested_settings() -%}
    {%- set key = afterimage._tested_key('neighbours_differ', key) -%}
    {%- set own = key + afterimage._history_own_columns() + settings.get('optional_columns', {}) | list + [model.identifier ~ '_id'] -%}
    {%- set data = afterimage._without(afterimage._raw_columns(model) | map(attribute='name') | list, own) -%}
    {%- set tracked = afterimage._tracked_columns(data, settings) -%}
    {%- set values = 'struct(' ~ (afterimage._listed(tracked) | replace('\n        ', ' ')) ~ ')' -%}
with

versions as (
    select
        {{ afterimage._listed(key) }},
        valid_from_seq,
        valid_to_seq,
        closed_by,
        lead(valid_from_seq) over by_key as next_from_seq,
        lead(changed_columns) over by_key as next_changed_columns,
        {{ values ~ ' <=> lead(' ~ values ~ ') over by_key' if tracked else 'true' }} as is_equal_to_next
    from {{ model }}
    window by_key as (
        partition by
            {{ afterimage._listed(key, indent=12) }}
        order by valid_from_seq
    )
),

judged as (
    select
        *,
        case
            when not (next_from_seq <=> valid_to_seq)
                then 'closed by an update, but no version follows at valid_to_seq'
            when coalesce(size(next_changed_columns), 0) < 1
                then 'the version that follows names no changed column'
            when is_equal_to_next
                then 'the version that follows has the same tracked values'
        end as what_is_wrong
    from versions
    where closed_by = 'U'
)

select *
from judged
where what_is_wrong is not null
{% endtest %}
