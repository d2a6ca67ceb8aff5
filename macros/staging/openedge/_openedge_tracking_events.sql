{# Rows of OpenEdge's tracking table as they are, for the models that need no change table. #}
{% macro _openedge_tracking_events(macro, source_name, tracking, tables, operations) %}
    {%- set relation = source(source_name, tracking) -%}
    {%- if tables is string or tables is mapping or not tables -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `tables` is a list of source tables of " ~ source_name ~ ", got " ~ tables
            ~ ". Write " ~ macro ~ "('" ~ source_name ~ "', '" ~ tracking ~ "', ['CDC_orders', 'CDC_items'])."
        ) }}
    {%- endif -%}
    {%- set raw_columns = afterimage._landed_columns(macro, relation) or afterimage._settings(source_name, tracking).get('declared_columns', []) -%}
    {%- if not raw_columns -%}
        {{- return('select * from ' ~ relation) -}}
    {%- endif -%}
    {%- set table = source_name ~ '.' ~ tracking -%}
    {%- set own = afterimage._openedge_own_columns(raw_columns) -%}
    {%- do afterimage._check_openedge_columns(macro, table, raw_columns, own, ['table_number', 'sequence', 'operation', 'time_stamp']) -%}
    {%- set map = afterimage._openedge_field_map(macro, table, own) -%}
    {%- set numbers = {} -%}
    {%- for name in tables -%}
        {%- set settings = afterimage._settings(source_name, name) -%}
        {%- if settings.table_number is none -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: table " ~ source_name ~ "." ~ name ~ " has no `table_number`. Fix: set it in its"
                ~ " `meta.afterimage` to the source table's number, which is `_File._File-Number` in the database."
            ) }}
        {%- endif -%}
        {%- do numbers.update({settings.table_number: {'name': name, 'columns': afterimage._openedge_declared_fields(settings)}}) -%}
    {%- endfor -%}
with

tracking_rows as (
    select
        {{ afterimage._openedge_number(own, 'table_number') }} as _table_number,
        {{ afterimage._openedge_number(own, 'sequence', 'bigint') }} as _sequence,
        {{ afterimage._openedge_number(own, 'operation') }} as _operation,
        try_cast({{ afterimage._quoted(own.time_stamp.name) }} as timestamp) as changed_at,
        {{ afterimage._column_as_text(own, 'user_name') }} as user_name,
        {{ afterimage._column_as_text(own, 'tran_id') }} as transaction_id,
        {{ map.sql }} as _field_map,
        {{ afterimage._column_as_text(own, 'changed_fields') }} as _changed_fields,
        {{ afterimage._openedge_number(own, 'recid', 'bigint') }} as recid,
        {{ afterimage._openedge_number(own, 'partition_id') }} as partition_id,
        {{ afterimage._openedge_number(own, 'tenant_id') }} as tenant_id,
        {{ afterimage._column_as_text(own, 'policy_id') }} as policy_id
    from {{ relation }}
),

-- extracts overlap; under another policy a sequence may come again
distinct_rows as (
    select *
    from (
        select
            *,
            row_number() over (
                partition by policy_id, _table_number, _sequence, _operation, changed_at order by transaction_id
            ) as _copy
        from tracking_rows
        where
            _table_number in ({{ numbers | join(', ') }})
            and _operation in ({{ operations | join(', ') }})
    ) as numbered
    where _copy = 1
),

final as (
    select
        case _table_number
            {%- for number, table in numbers.items() %}
            when {{ number }} then {{ afterimage._text(table.name) }}
            {%- endfor %}
        end as table_name,
        {{ afterimage._openedge_change_seq('_sequence') }} as change_seq,
        case _operation
            {%- for number, name in afterimage._openedge_operation_names().items() if number in operations %}
            when {{ number }} then {{ afterimage._text(name) }}
            {%- endfor %}
        end as operation_name,
        changed_at,
        user_name,
        transaction_id,
        {%- if 'changed_fields' in own %}
        split(_changed_fields, ';') as changed_columns,
        {%- elif numbers.values() | selectattr('columns') | list %}
        case _table_number
            {%- for number, table in numbers.items() if table.columns %}
            when {{ number }}
                then
                    {{ afterimage.openedge_field_map_columns('_field_map', table.columns, map.type) | indent(20) }}
            {%- endfor %}
        end as changed_columns,
        {%- else %}
        cast(null as array<string>) as changed_columns,
        {%- endif %}
        recid,
        partition_id,
        tenant_id,
        policy_id
    from distinct_rows
)

select * from final
{%- endmacro %}


{# The fields of a table in the order of the field map, without what a setting adds; empty where none are declared. #}
{% macro _openedge_declared_fields(settings) %}
    {%- set added = [settings.partition_column, settings.tenant_column, settings.recid_column] -%}
    {%- set fields = [] -%}
    {%- for column in settings.declared_columns if not afterimage._is_openedge_column(column.name) and column.name not in added -%}
        {%- do fields.append(column.name) -%}
    {%- endfor -%}
    {{ return(settings.mask_columns or fields) }}
{% endmacro %}


{# The vendor's names of operations, by number; demo/seeds/openedge/openedge_operations.csv says more. #}
{% macro _openedge_operation_names() %}
    {{ return({1: 'Create', 2: 'Delete', 4: 'After Update', 5: 'Field Delete', 12: 'Field Add'}) }}
{% endmacro %}
