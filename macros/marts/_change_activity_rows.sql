{#
    What change logs hold beyond what is counted already, as one row per table and hour.

    A change is late when its change_seq is not greater than the greatest one of the batches recorded before its own.
    Rejected records count in the hour in which they were recorded: many have no time of their own, and in others the
    time is what is wrong.

    Arguments:
      logs  [{table, changes, node, counted}], which may be empty; counted is {} or {recorded_at, rejects_recorded_at, change_seq}
#}
{% macro _change_activity_rows(logs) -%}
with

changes as (
    {%- for log in logs %}
    select
        {{ afterimage._text(log.table) }} as table_name,
        change_seq,
        change_oper,
        date_trunc('hour', coalesce(changed_at, recorded_at)) as activity_hour,
        unix_seconds(recorded_at) - unix_seconds(changed_at) as lag_seconds,
        recorded_at,
        {{ afterimage._is_key_change(afterimage._settings_of(log.node).key) }} as is_key_change,
        cast({{ afterimage._text(log.counted.change_seq) if log.counted.change_seq else 'null' }} as string) as counted_seq
    from {{ log.changes }} as changes
    where {{ afterimage._is_uncounted_change(log) }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- else %}
    select
        cast(null as string) as table_name,
        cast(null as string) as change_seq,
        cast(null as string) as change_oper,
        cast(null as timestamp) as activity_hour,
        cast(null as bigint) as lag_seconds,
        cast(null as timestamp) as recorded_at,
        false as is_key_change,
        cast(null as string) as counted_seq
    where false
    {%- endfor %}
),

rejects as (
    {%- for log in logs %}
    select
        {{ afterimage._text(log.table) }} as table_name,
        date_trunc('hour', recorded_at) as activity_hour,
        recorded_at
    from {{ afterimage._rejected_relation(log.changes) }}
    where {{ afterimage._is_uncounted_reject(log) }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- else %}
    select
        cast(null as string) as table_name,
        cast(null as timestamp) as activity_hour,
        cast(null as timestamp) as recorded_at
    where false
    {%- endfor %}
),

batches as (
    select
        table_name,
        recorded_at,
        max(change_seq) as greatest_seq,
        max(counted_seq) as counted_seq
    from changes
    group by table_name, recorded_at
),

-- the greatest position recorded before each batch; NULL before the first one
known as (
    select
        table_name,
        recorded_at,
        greatest(
            counted_seq,
            max(greatest_seq) over (
                partition by table_name
                order by recorded_at
                rows between unbounded preceding and 1 preceding
            )
        ) as known_seq
    from batches
),

counted_changes as (
    select
        changes.table_name,
        changes.activity_hour,
        count(*) as changes,
        count_if(changes.change_oper = 'I') as inserts,
        count_if(changes.change_oper = 'U') as updates,
        count_if(changes.is_key_change) as key_changes,
        count_if(changes.change_oper = 'D') as deletes,
        count_if(changes.change_oper = 'T') as truncates,
        count_if(changes.change_seq <= known.known_seq) as late_changes,
        min(changes.change_seq) as first_change_seq,
        max(changes.change_seq) as last_change_seq,
        max(changes.lag_seconds) as max_lag_seconds,
        sum(changes.lag_seconds) as total_lag_seconds,
        max(changes.recorded_at) as recorded_at
    from changes
    inner join known
        on
            changes.table_name = known.table_name
            and changes.recorded_at = known.recorded_at
    group by changes.table_name, changes.activity_hour
),

counted_rejects as (
    select
        table_name,
        activity_hour,
        count(*) as rejected,
        max(recorded_at) as rejects_recorded_at
    from rejects
    group by table_name, activity_hour
)

select
    coalesce(counted_changes.table_name, counted_rejects.table_name) as table_name,
    coalesce(counted_changes.activity_hour, counted_rejects.activity_hour) as activity_hour,
    {%- for name in ['changes', 'inserts', 'updates', 'key_changes', 'deletes', 'truncates', 'late_changes'] %}
    coalesce(counted_changes.{{ name }}, 0) as {{ name }},
    {%- endfor %}
    coalesce(counted_rejects.rejected, 0) as rejected,
    counted_changes.first_change_seq,
    counted_changes.last_change_seq,
    counted_changes.total_lag_seconds / counted_changes.changes as average_lag_seconds,
    counted_changes.max_lag_seconds,
    coalesce(counted_changes.total_lag_seconds, 0) as total_lag_seconds,
    counted_changes.recorded_at,
    counted_rejects.rejects_recorded_at
from counted_changes
full outer join counted_rejects
    on
        counted_changes.table_name = counted_rejects.table_name
        and counted_changes.activity_hour = counted_rejects.activity_hour
{%- endmacro %}
