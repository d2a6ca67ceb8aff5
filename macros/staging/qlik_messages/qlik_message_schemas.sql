{#
    The columns of tables according to metadata messages: one row per schema id and column.

    Arguments:
      messages  ref() of the model that decodes the messages, which finds new metadata messages in each run
#}
{% macro qlik_message_schemas(messages) %}
    {{- config(materialized='staging_view') -}}
with

metadata as (
    select
        schema_id,
        table_schema,
        table_name,
        table_version,
        server_name,
        task_name,
        try_cast(metadata_timestamp as timestamp) as metadata_timestamp,
        columns,
        -- delivered at least once
        row_number() over (
            partition by schema_id order by produced_at, topic, partition, offset
        ) as delivery
    from {{ messages }}
    where kind = 'metadata'
),

final as (
    select
        metadata.schema_id,
        metadata.table_schema,
        metadata.table_name,
        metadata.table_version,
        metadata.server_name,
        metadata.task_name,
        metadata.metadata_timestamp,
        described.name as column_name,
        described.ordinal,
        described.type as data_type,
        described.length,
        described.precision,
        described.scale,
        nullif(described.primarykeyposition, 0) as key_position,
        described.nullable as is_nullable
    from metadata
        lateral view explode(metadata.columns) as described
    where metadata.delivery = 1
)

select * from final
{%- endmacro %}
