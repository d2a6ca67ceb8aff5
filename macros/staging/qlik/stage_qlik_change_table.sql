{#
    A Qlik change table `<table>__ct` in the change-event contract: one row per raw record, nothing filtered.
    With `base` the rows of that table of the same source follow, as rows of a full load (change_oper L).

    What a record shows by itself is decided here: its operation, time, declared changed columns, unknown columns and
    most reject reasons. What takes other records, such as pairs and duplicates, is left to the change log.
#}
{% macro stage_qlik_change_table(source_name, table_name, base=none) %}
    {%- set macro_name = 'stage_qlik_change_table' -%}
    {%- set given = afterimage._staging_input(macro_name, source_name, table_name, base) -%}
    {%- set relation, base_relation = given.relation, given.base_relation -%}
    {%- set settings, table, raw_columns = given.settings, given.table, given.raw_columns -%}
    {%- if not raw_columns -%}
        {{- return('select * from ' ~ relation) -}}
    {%- endif -%}
    {%- if afterimage._missing_qlik_headers(raw_columns, settings.header_prefix) and not afterimage._raw_columns(relation) -%}
        {%- do afterimage._stop_for_missing(macro_name, relation) -%}
    {%- endif -%}
    {%- do afterimage._check_base(macro_name, table, base, settings) -%}
    {%- set found = afterimage._qlik_change_table(macro_name, table, raw_columns, settings) -%}
    {%- set headers = found.headers -%}
    {%- set mask = found.mask -%}
    {%- set names = found.data | map(attribute='name') | list -%}

    {#- what is read many times is selected first, under names of its own #}
    {%- set parts = {} -%}
    {%- if mask -%}
        {%- set mask_arguments = {
            'mask': afterimage._quoted(mask.column),
            'data_columns': mask.columns,
            'byte_order': settings.mask_byte_order,
            'first_data_bit': mask.first_data_bit,
            'mask_type': mask.type,
        } -%}
        {%- set parts = afterimage.change_mask_parts(**mask_arguments) -%}
    {%- endif -%}
    {%- do afterimage._check_header_columns(macro_name, table, found, settings) -%}
    {%- do afterimage._check_data_columns(macro_name, table, names, settings, ['_change_oper', '_changed_at'] + parts | list) -%}
    {%- set change_seq = afterimage._quoted(headers.change_seq.name) -%}
    {%- if afterimage._normal_type(headers.change_seq.data_type) != 'string' -%}
        {%- set change_seq = 'cast(' ~ change_seq ~ ' as string)' -%}
    {%- endif -%}
    {%- set operation = afterimage._quoted(headers.operation.name) if 'operation' in headers else none -%}
    {%- set timestamp = afterimage._typed_column('timestamp', headers.timestamp, 'timestamp') if 'timestamp' in headers else none -%}
    {%- set casts = ([timestamp] if timestamp else []) + found.data -%}
with

source as (
    select
        *,
        {{ afterimage.qlik_change_operation(afterimage._quoted(headers.change_oper.name), operation) | indent(8) }} as _change_oper,
        {{ afterimage.change_seq_to_timestamp(change_seq) | indent(8) }} as _changed_at
        {%- for name, expression in parts.items() %},
        {{ expression }} as {{ name }}
        {%- endfor %}
    from {{ relation }}
),

decoded as (
    select
        {{ change_seq }} as change_seq,
        _change_oper as change_oper,
        _changed_at as changed_at,
        {{ afterimage._known_time(afterimage._cast_column(timestamp)) | indent(8) if timestamp else 'cast(null as timestamp)' }} as source_timestamp,
        {{ afterimage._column_as_text(headers, 'transaction_id') }} as transaction_id,
        cast(null as bigint) as transaction_event,
        {{ afterimage._column_as_text(headers, 'stream_position') }} as stream_position,
        {%- for name in settings.header_columns %}
        {{ afterimage._column_as_text(headers, name) }} as {{ name }},
        {%- endfor %}
        {%- if mask %}
        case
            when _change_oper in ('I', 'U', 'D')
                then
                    {{ afterimage.change_mask_columns(has_parts=true, **mask_arguments) | indent(20) }}
        end as declared_changed_columns,
        {%- else %}
        cast(null as array<string>) as declared_changed_columns,
        {%- endif %}
        {{ afterimage._qlik_known_columns(found, settings.mask_byte_order) | indent(8) }} as known_columns,
        cast(null as map<string, string>) as truncate_scope,
        cast(null as string) as load_id,
        {{ afterimage._column_as_text(headers, 'partition_name') }} as arrival,
        coalesce(
            case
                when {{ change_seq }} is null then 'null_change_seq'
                when
                    {{ afterimage.change_seq_is_malformed(change_seq, '_changed_at') | indent(20) }}
                    then 'malformed_change_seq'
                when
                    {{ afterimage._is_in_future() }}
                    then 'future_change_seq'
                when _change_oper is null then 'unknown_operation'
            end
            {#- what a truncate holds besides is not documented: neither its mask nor its values are a reason #}
            {%- if mask and operation %},
            if(
                _change_oper = 'T',
                null,
                {{ afterimage.change_mask_error(has_parts=true, **mask_arguments) | indent(16) }}
            )
            {%- elif mask %},
            {{ afterimage.change_mask_error(has_parts=true, **mask_arguments) | indent(12) }}
            {%- endif %}
            {%- if casts | selectattr('is_cast') | list %},
            case
                {%- if operation %}
                when _change_oper = 'T' then null
                {%- endif %}
                {{- afterimage._when_uncastable(casts) | indent(16) }}
            end
            {%- endif %}
        ) as reject_reason,
        {{ afterimage._record_hash(raw_columns, headers.get('partition_name'), casts, 'reject_reason is not null') | indent(8) }} as record_hash,
        {{ afterimage._raw_record(raw_columns) | indent(8) }} as raw_record
        {%- for column in found.data %},
        {%- if operation %}
        if(_change_oper = 'T', null, {{ afterimage._cast_column(column) }}) as {{ afterimage._quoted(column.name) }}
        {%- else %}
        {{ afterimage._cast_column(column) }}{{ ' as ' ~ afterimage._quoted(column.name) if column.is_cast }}
        {%- endif %}
        {%- endfor %}
    from source
),

{{ afterimage._with_base_rows(macro_name, source_name, base, base_relation, settings, found.data) }}
{%- endmacro %}
