{#
    A table of changes of any tool in the change-event contract: one row per raw record, nothing filtered. The settings of
    the table say which of its columns hold what; a preset has those of a vendor's format.
    With `base` the rows of that table of the same source follow, as rows of a full load (change_oper L).
#}
{% macro stage_change_feed(source_name, table_name, base=none) %}
    {%- set macro_name = 'stage_change_feed' -%}
    {%- set given = afterimage._staging_input(macro_name, source_name, table_name, base) -%}
    {%- set relation, base_relation = given.relation, given.base_relation -%}
    {%- set settings, table, raw_columns = given.settings, given.table, given.raw_columns -%}
    {%- if not raw_columns -%}
        {{- return('select * from ' ~ relation) -}}
    {%- endif -%}
    {%- do afterimage._check_base(macro_name, table, base, settings) -%}
    {%- set data = afterimage._feed_data(macro_name, table, raw_columns, settings) -%}
    {%- set names = data | map(attribute='name') | list -%}
    {%- do afterimage._columns_of_setting(macro_name, table, 'incomplete_before', settings.incomplete_before, data) -%}
    {%- set unknown = afterimage._feed_unknown(data, settings) -%}
    {%- set arrival = none -%}
    {%- for column in raw_columns if settings.arrival and column.name | lower == settings.arrival.strip('`') | lower -%}
        {%- set arrival = column -%}
    {%- endfor -%}

    {%- set mask = {
        'mask': settings.changed_mask,
        'data_columns': afterimage._columns_of_setting(macro_name, table, 'mask_columns', settings.mask_columns, data) or names,
        'byte_order': settings.mask_byte_order,
        'first_data_bit': settings.mask_first_data_bit,
        'mask_type': 'binary',
    } if settings.changed_mask else none -%}
    {%- set parts = afterimage.change_mask_parts(**mask) if mask else {} -%}
    {%- set own = ['_change_seq', '_change_oper', '_changed_at', '_is_placed'] + parts | list -%}
    {%- do afterimage._check_data_columns(macro_name, table, names, settings, own) -%}
with

source as (
    select
        *,
        {{ afterimage._feed_change_seq(settings.sequence) | indent(8) }} as _change_seq,
        {%- for value in settings.sequence %}
        {{ 'and ' if not loop.first }}({{ value }}) is not null
        {%- endfor %} as _is_placed,
        {{ afterimage._feed_operation(settings) | indent(8) }} as _change_oper,
        {{ afterimage._feed_changed_at(settings) }} as _changed_at
        {%- for name, expression in parts.items() %},
        {{ expression }} as {{ name }}
        {%- endfor %}
    from {{ relation }}
),

decoded as (
    select
        _change_seq as change_seq,
        _change_oper as change_oper,
        _changed_at as changed_at,
        _changed_at as source_timestamp,
        cast({{ settings.transaction_id or 'null' }} as string) as transaction_id,
        try_cast({{ settings.transaction_event or 'null' }} as bigint) as transaction_event,
        {%- if mask %}
        if(
            _change_oper = 'U',
            {{ afterimage.change_mask_columns(has_parts=true, **mask) | indent(12) }},
            null
        ) as declared_changed_columns,
        {%- else %}
        if(
            _change_oper = 'U',
            cast({{ settings.changed_columns or 'null' }} as array<string>),
            null
        ) as declared_changed_columns,
        {%- endif %}
        {%- if unknown %}
        {{ afterimage._known_columns("_change_oper in ('I', 'U', 'B')", data, unknown) | indent(8) }} as known_columns,
        {%- else %}
        cast(null as array<string>) as known_columns,
        {%- endif %}
        cast(null as map<string, string>) as truncate_scope,
        cast(null as string) as load_id,
        cast({{ settings.arrival or 'null' }} as string) as arrival,
        coalesce(
            case
                -- no change: neither its place nor its values count
                when _change_oper = 'N' then null
                when not _is_placed then 'null_change_seq'
                when _change_seq is null then 'malformed_change_seq'
                when _changed_at > current_timestamp() + interval 1 day then 'future_change_seq'
                when _change_oper is null then 'unknown_operation'
            end
            {%- if mask %},
            if(
                _change_oper = 'U',
                {{ afterimage.change_mask_error(has_parts=true, **mask) | indent(16) }},
                null
            )
            {%- endif %}
            {%- if settings.changed_at %},
            if(
                _change_oper <> 'N' and ({{ settings.changed_at }}) is not null and _changed_at is null,
                {{ afterimage._text('uncastable_value:' ~ settings.changed_at.strip('`')) }},
                null
            )
            {%- endif %}
            {%- if data | selectattr('is_cast') | list %},
            case
                when _change_oper in ('N', 'T') then null
                {%- for column in data if column.is_cast %}
                when
                    ({{ afterimage._is_uncastable(column) }})
                    {%- for other in unknown if other.name == column.name %}
                    and not ({{ other.condition }})
                    {%- endfor %}
                    then {{ afterimage._text('uncastable_value:' ~ column.raw_name) }}
                {%- endfor %}
            end
            {%- endif %}
        ) as reject_reason,
        {{ afterimage._record_hash(raw_columns, arrival, data, 'reject_reason is not null or known_columns is not null') | indent(8) }} as record_hash,
        {{ afterimage._raw_record(raw_columns) | indent(8) }} as raw_record
        {%- for column in data %},
        {%- set absent = ["_change_oper = 'T'"] -%}
        {%- for other in unknown if other.name == column.name -%}
            {%- do absent.append(other.condition) -%}
        {%- endfor %}
        if({{ absent | join(' or ') }}, null, {{ afterimage._cast_column(column) }}) as {{ afterimage._quoted(column.name) }}
        {%- endfor %}
    from source
),

{{ afterimage._with_base_rows(macro_name, source_name, base, base_relation, settings, data) }}
{%- endmacro %}
