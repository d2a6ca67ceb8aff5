{#
    Generic test of a history: per key its versions form a chain, each has a surrogate key of its own, and one that an update
    closed goes straight over into one that differs from it.

    Every interval of change_seq has a length, none overlaps the next one, and only the last one may be open.
    Times follow: an interval of timestamps may be empty, because two changes can fall into one hundredth of a second,
    but it never runs backwards, and neither do its neighbours. `is_current` says that the interval is open.

    Two versions of a key with the same tracked values and nothing in between would be one version that was cut.
    Versions that a delete, truncate, load or key change separates (`closed_by` D, T, R, K) may be equal.

    Arguments:
      key         columns; default: the `key` of the source table's settings
      version_id  column of the surrogate key; default: the model's name and `_id`
#}
{% test consistent_versions(model, key=none, version_id=none) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_whole_table('consistent_versions', model) -%}
    {%- set settings = afterimage._tested_settings() -%}
    {%- set key = afterimage._tested_key('consistent_versions', key) -%}
    {%- set id_column = version_id or afterimage._tested_node().alias ~ '_id' -%}
    {%- set own = key + afterimage._history_own_columns() + settings.get('optional_columns', {}) | list + [id_column] -%}
    {%- set data = afterimage._without(afterimage._raw_columns(model) | map(attribute='name') | list, own) -%}
    {%- set tracked = afterimage._tracked_columns(data, settings) -%}
    {%- set values = 'struct(' ~ (afterimage._listed(tracked) | replace('\n        ', ' ')) ~ ')' -%}
with

versions as (
    select
        {{ afterimage._listed([id_column] + key) }},
        valid_from_seq,
        valid_to_seq,
        valid_from,
        valid_to,
        is_current,
        closed_by,
        lead(valid_from_seq) over by_key as next_from_seq,
        lead(valid_from) over by_key as next_from,
        lead(changed_columns) over by_key as next_changed_columns,
        {{ values ~ ' <=> lead(' ~ values ~ ') over by_key' if tracked else 'true' }} as is_equal_to_next,
        count(*) over (partition by {{ afterimage._quoted(id_column) }}) as versions_of_id
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
            when {{ afterimage._quoted(id_column) }} is null
                then 'has no surrogate key'
            when versions_of_id > 1
                then 'another version has the same surrogate key'
            when closed_by = 'U' and not (next_from_seq <=> valid_to_seq)
                then 'closed by an update, but no version follows at valid_to_seq'
            when closed_by = 'U' and coalesce(size(next_changed_columns), 0) < 1
                then 'the version that follows names no changed column'
            when closed_by = 'U' and is_equal_to_next
                then 'the version that follows has the same tracked values'
        end as what_is_wrong
    from versions
)

select *
from judged
where what_is_wrong is not null
{% endtest %}
