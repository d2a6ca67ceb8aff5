{#
    The DDL in a solidDB server's log: one row per DDL record, of every table, index, view, sequence and
    counter. Codes that the manual does not list are included, as kind `unknown`.
#}
{% macro soliddb_ddl_events(source_name, log) %}
    {{- config(materialized='staging_view') -}}
    {%- set tables = source(source_name, 'sys_tables') -%}
with

events as (
    select * from {{ log }}
    where is_ddl and record_id = 13
),

tables as (
    select
        id,
        max_by(table_schema, {{ afterimage._snapshot_place() }}) as table_schema,
        max_by(table_name, {{ afterimage._snapshot_place() }}) as table_name
    from {{ tables }}
    group by id
),

final as (
    select
        events.log_address,
        events.changed_at,
        events.transaction_id,
        events.relation_id,
        tables.table_schema,
        tables.table_name,
        events.ddl_code,
        events.ddl_kind,
        events.ddl_name,
        events.sql_text,
        events.reject_reason,
        events.reject_detail
    from events
    left join tables on events.relation_id = tables.id
)

select * from final
{%- endmacro %}
