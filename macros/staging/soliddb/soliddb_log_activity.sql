{#
    What a log reader has landed of a solidDB server, by the hour: records, transactions, heartbeats and shutdowns. It is a
    view over the landed SYS_LOG: what was purged is not counted any more. Most of these records change no row, so no
    change log holds them, and heartbeats and shutdowns have no log address.

    Arguments:
      source_name  name of the dbt source that has sys_log
#}
{% macro soliddb_log_activity(source_name) %}
    {{- config(materialized='staging_view') -}}
    {%- set log = source(source_name, 'sys_log') -%}
with

records as (
    select
        try_cast(recid as int) as record_id,
        coalesce(try_cast(flags as int), 0) as flags,
        logaddr,
        landed_at
    from {{ log }}
),

final as (
    select
        date_trunc('hour', landed_at) as activity_hour,
        -- landed twice, a record has one address
        count(distinct if(record_id > 0, logaddr, null)) as records,
        count(distinct if(record_id = 12, logaddr, null)) as committed_transactions,
        count(distinct if(record_id = 7 and (flags & 64) <> 0, logaddr, null)) as capture_off_transactions,
        count_if(coalesce(record_id, 0) = 0 and (flags & 3) = 0) as heartbeats,
        count_if((flags & 2) <> 0) as shutdowns,
        max(if((flags & 2) <> 0, landed_at, null)) as last_shutdown_at
    from records
    group by date_trunc('hour', landed_at)
)

select * from final
{%- endmacro %}
