{#
    The changes of one table from Qlik messages, in the change-event contract: its rows of the decoded messages,
    nothing filtered. An update that carries its before image gives two records, U and B, as in a change table.

    The source entry of the table is the table as the messages call it: `message_table`, by default its name. Only the
    messages themselves are landed as a table.

    Arguments:
      source_name  name of the dbt source
      table_name   the table in it; its settings count
      messages     ref() of the model that decodes the messages
#}
{% macro stage_qlik_messages(source_name, table_name, messages) %}
    {{- config(materialized='staging_view') -}}
    {%- set relation = source(source_name, table_name) -%}
    {%- set settings = afterimage._settings(source_name, table_name) -%}
    {%- if not execute -%}
        {#- while dbt parses, neither tables nor settings are known #}
        {{- return('select * from ' ~ messages) -}}
    {%- endif -%}
    {%- set macro_name = 'stage_qlik_messages' -%}
    {%- set table = source_name ~ '.' ~ table_name -%}
    {%- set message_table = settings.message_table or relation.identifier -%}
    {%- set source_table = message_table if settings.table_from in ('schema_id', 'message') else relation.identifier -%}
    {%- set data = afterimage._qlik_message_data(macro_name, table, source_table, messages, settings) -%}
    {%- do afterimage._check_data_columns(macro_name, table, data | map(attribute='name') | list, settings, afterimage._qlik_message_columns()) -%}
    {%- set mask_columns = afterimage._message_columns_by_ordinal(macro_name, table, data, settings) -%}
with

messages as (
    select
        {%- for name in afterimage._qlik_message_columns() %}
        {%- if name in ('_change_mask', '_column_mask') %}
        nullif(regexp_replace({{ name[1:] }}, '^0[xX]', ''), '') as {{ name }},
        {%- elif name == '_mask_columns' %}
        {{ mask_columns }} as _mask_columns,
        {%- else %}
        {{ afterimage._quoted(name[1:]) }} as {{ name }},
        {%- endif %}
        {%- endfor %}
        image as _after,
        before as _before
    from {{ messages }}
    where
        kind in ('change', 'load', 'tombstone', 'rejected')
        and table_name = {{ afterimage._text(message_table) }}
        {%- if afterimage._schema_in_messages(settings) %}
        and table_schema = {{ afterimage._text(settings.table_schema) }}
        {%- endif %}
),

-- an update is two records, its after image and its before image; images are not named here, so that a
-- query of letters and positions alone reads none
records as (
    select
        *,
        explode(
            if(
                _operation = 'UPDATE' and _has_before,
                array('U', 'B'),
                array(
                    case
                        when _kind = 'tombstone' then 'N'
                        when _kind = 'load' then 'L'
                        when _kind = 'rejected' then cast(null as string)
                        when _operation = 'INSERT' then 'I'
                        when _operation = 'UPDATE' then 'U'
                        when _operation = 'DELETE' then 'D'
                    end
                )
            )
        ) as _letter
    from messages
),

images as (
    select
        *,
        case
            when _letter = 'B' then _before
            -- the deleted row is in either of the two images
            when
                _operation = 'DELETE'
                and not coalesce(exists(map_values(_after), value -> value is not null), false)
                then coalesce(_before, _after)
            else _after
        end as _sent_image
    from records
),

named as (
    select
        *,
        {{ afterimage._image_by_name(table, '_sent_image', data | map(attribute='message_name') | list) | indent(8) }} as _image
    from images
),

source as (
    select
        *,
        {{ afterimage.change_seq_to_timestamp('_change_seq') | indent(8) }} as _changed_at,
        if(
            _column_mask is null,
            null,
            {{ afterimage._message_mask_columns('_column_mask') | indent(12) }}
        ) as _sent,
        if(
            _change_mask is null,
            null,
            {{ afterimage._message_mask_columns('_change_mask') | indent(12) }}
        ) as _marked
        {%- for column in data %},
        element_at(_image, {{ afterimage._text(column.message_name) }}) as {{ afterimage._quoted(column.name) }}
        {%- endfor %}
    from named
),

known as (
    select
        *,
        array_compact(
            array(
                {%- for column in data %}
                if(
                    {{ afterimage._is_known_in_message(column) | indent(20) }},
                    {{ afterimage._text(column.name) }},
                    null
                ){{ ',' if not loop.last }}
                {%- endfor %}
            )
        ) as _known
    from source
),

decoded as (
    select
        _change_seq as change_seq,
        _letter as change_oper,
        if(_kind = 'load', _loaded_at, _changed_at) as changed_at,
        {{ afterimage._known_time('try_cast(_source_timestamp as timestamp)') | indent(8) }} as source_timestamp,
        _transaction_id as transaction_id,
        _transaction_event as transaction_event,
        _stream_position as stream_position,
        _is_last_event as transaction_last_event,
        if(
            _letter in ('I', 'U', 'D'),
            {{ afterimage._as_declared('_marked', data) | indent(12) }},
            null
        ) as declared_changed_columns,
        if(
            _letter in ('I', 'U', 'B', 'L') and size(_known) < {{ data | length }},
            _known,
            null
        ) as known_columns,
        -- a message holds all images of its change
        false as partner_may_follow,
        cast(null as map<string, string>) as truncate_scope,
        _load_id as load_id,
        _arrival as arrival,
        coalesce(
            _reject_reason,
            case
                when _kind <> 'change' then null
                when _change_seq is null then 'null_change_seq'
                when
                    {{ afterimage.change_seq_is_malformed('_change_seq', '_changed_at') | indent(20) }}
                    then 'malformed_change_seq'
                when
                    {{ afterimage._is_in_future() }}
                    then 'future_change_seq'
                when _letter is null then 'unknown_operation'
                {%- for mask in ['_change_mask', '_column_mask'] %}
                when {{ mask }} rlike '[^0-9A-Fa-f]' then 'malformed_mask'
                when
                    length(ltrim('0', {{ mask }})) > (size(_mask_columns) + 3) div 4
                    then 'mask_too_wide'
                {%- endfor %}
            end
            {%- if data | selectattr('is_cast') | list %},
            case
                when _letter = 'N' then null
                {{- afterimage._when_uncastable(data) | indent(16) }}
            end
            {%- endif %}
        ) as reject_reason,
        if(_letter = 'B', xxhash64(_record_hash, 'B'), _record_hash) as record_hash,
        to_json(
            struct(
                _topic as topic,
                _partition as partition,
                _offset as offset,
                _produced_at as produced_at,
                _operation as operation,
                _change_seq as change_sequence,
                _source_timestamp as timestamp,
                _stream_position as stream_position,
                _transaction_id as transaction_id,
                _transaction_event as transaction_event_counter,
                _is_last_event as transaction_last_event,
                _change_mask as change_mask,
                _column_mask as column_mask,
                _after as data,
                _before as before_data,
                _raw_value as undecoded_value,
                _reject_detail as reject_detail
            ),
            map('ignoreNullFields', 'false')
        ) as raw_record
        {%- for column in data %},
        {{ afterimage._cast_column(column) }}{{ ' as ' ~ afterimage._quoted(column.name) if column.is_cast }}
        {%- endfor %}
    from known
),

{{ afterimage._with_base_rows(macro_name, source_name, none, none, settings, data) }}
{%- endmacro %}
