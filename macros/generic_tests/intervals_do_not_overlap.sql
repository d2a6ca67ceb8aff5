{#
    Generic test of a history: per key its versions form a chain.

    Every interval of change_seq has a length, none overlaps the next one, and only the last one may be open.
    Times follow: an interval of timestamps may be empty, because two changes can fall into one hundredth of a second,
    but it never runs backwards, and neither do its neighbours. `is_current` says that the interval is open.

    Arguments:
      key  columns; default: the `key` of the source table's settings
#}
{% test intervals_do_not_overlap(model, key=none) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set key = afterimage._tested_key('intervals_do_not_overlap', key) -%}
with

versions as (
    select
        {{ afterimage._listed(key) }},
        valid_from_seq,
        valid_to_seq,
        valid_from,
        valid_to,
        is_current,
        lead(valid_from_seq) over by_key as next_from_seq,
        lead(valid_from) over by_key as next_from
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
            when valid_from_seq is null or valid_from is null
                then 'begins nowhere'
            when valid_to_seq <= valid_from_seq
                then 'ends before it begins'
            when valid_to_seq is null and next_from_seq is not null
                then 'open, although another version follows'
            when valid_to_seq > next_from_seq
                then 'overlaps the next version'
            when valid_to < valid_from
                then 'its time ends before it begins'
            when next_from < valid_from
                then 'the next version begins at an earlier time'
            when valid_to > next_from
                then 'its time overlaps the next version'
            when (valid_to is null) <> (valid_to_seq is null)
                then 'valid_to and valid_to_seq disagree on whether it is open'
            when not (is_current <=> (valid_to_seq is null))
                then 'is_current and valid_to_seq disagree on whether it is open'
        end as what_is_wrong
    from versions
)

select *
from judged
where what_is_wrong is not null
{% endtest %}
