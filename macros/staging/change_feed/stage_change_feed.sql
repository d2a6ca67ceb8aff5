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
    {%- do afterimage._check_feed_times(macro_name, table, relation, settings) -%}
    {%- if raw_columns != settings.declared_columns -%}
        {%- do afterimage._check_feed_columns(macro_name, table, raw_columns, settings) -%}
    {%- endif -%}
    {%- set schemas = adapter.afterimage.registered_schemas(settings.schema_registry, table) if settings.schema_registry else [] -%}
    {%- set settings = dict(settings, schemas=schemas) -%}
    {%- if schemas -%}
        {#- from here on the documents are what the registry's schemas decode #}
        {%- set settings = dict(settings, json_text='_message_text', json_payload=none) -%}
    {%- endif -%}
    {%- set data = afterimage._feed_data(macro_name, table, relation, raw_columns, settings) -%}
    {%- set names = data | map(attribute='name') | list -%}
    {%- do afterimage._columns_of_setting(macro_name, table, 'incomplete_before', settings.incomplete_before, data) -%}
    {%- if settings.unknown_if_null is not boolean -%}
        {%- do afterimage._columns_of_setting(macro_name, table, 'unknown_if_null', settings.unknown_if_null, data) -%}
    {%- endif -%}
    {%- set unknown = afterimage._feed_unknown(data, settings) -%}
    {%- set has_images = afterimage._has_images(settings) -%}
    {%- set arrival = none -%}
    {%- for column in raw_columns if settings.arrival and column.name | lower == settings.arrival.strip('`') | lower -%}
        {%- set arrival = column -%}
    {%- endfor -%}

    {%- set mask = {
        'data_columns': afterimage._listed_mask_columns(macro_name, table, names, none, settings) or names,
        'byte_order': settings.mask_byte_order,
        'first_data_bit': settings.mask_first_data_bit,
        'mask_type': 'binary',
    } if settings.changed_mask else none -%}
    {%- set is_loaded = "_load_id is not null and _change_seq is not null and not coalesce("
        ~ afterimage._is_in_future() ~ ", false)" -%}
    {%- set parts = afterimage.change_mask_parts(mask=settings.changed_mask, **mask) if mask else {} -%}
    {%- do afterimage._check_data_columns(macro_name, table, names, settings, afterimage._feed_helpers() + parts | list) -%}
with

{% if has_images -%}
{{ afterimage._feed_image_rows(table, relation, raw_columns, settings, data, parts, settings.before_images and settings.is_before_in_record) }},
{%- else -%}
events as (
    select
        *,
        {{ afterimage._feed_event(settings, data, parts) | indent(8) }}
    from {{ relation }}
    {%- if settings.filter %}
    where {{ settings.filter }}
    {%- endif %}
),

images as (
    select
        *,
        {%- if settings.unavailable_value is not none %}
        {{ afterimage._unavailable(data, settings) }} as _unavailable,
        {%- endif %}
        _letter as _change_oper
    from events
),
{%- endif %}

source as (
    select
        *
        {%- if mask %},
        if(
            _change_oper in ('U', 'B'),
            {{ afterimage.change_mask_columns(mask='_changed_mask', has_parts=true, **mask) | indent(12) }},
            null
        ) as _changed_columns
        {%- endif %}
    from images
),

decoded as (
    select
        _change_seq as change_seq,
        {%- if settings.load_id %}
        -- a loaded row without a known load, or of one in the future, is rejected among the changes
        if(_change_oper = 'L' and not ({{ is_loaded }}), null, _change_oper) as change_oper,
        {%- else %}
        _change_oper as change_oper,
        {%- endif %}
        _changed_at as changed_at,
        _changed_at as source_timestamp,
        _transaction_id as transaction_id,
        _transaction_event as transaction_event,
        if(_change_oper = 'U', _changed_columns, null) as declared_changed_columns,
        {%- if unknown %}
        {{ afterimage._known_columns("_change_oper in ('I', 'U', 'B', 'L')", data, unknown) | indent(8) }} as known_columns,
        {%- else %}
        cast(null as array<string>) as known_columns,
        {%- endif %}
        {%- if settings.pairs_before_images %}
        -- an update comes after its before image, or has it in its own record
        _change_oper = 'B' as partner_may_follow,
        {%- endif %}
        cast(null as map<string, string>) as truncate_scope,
        {%- if settings.load_id %}
        if(_change_oper = 'L' and {{ is_loaded }}, _load_id, null) as load_id,
        if(_change_oper = 'L' and {{ is_loaded }}, _is_load_end, null) as ends_load,
        {%- else %}
        cast(null as string) as load_id,
        {%- endif %}
        _arrival as arrival,
        coalesce(
            case
                -- no change: neither its place nor its values count
                when _change_oper = 'N' then null
                {%- if settings.schemas %}
                when _schema_id is not null and _record_text is null then 'unknown_schema'
                {%- endif %}
                {%- if settings.json_text %}
                when _is_malformed then 'malformed_message'
                {%- endif %}
                when not _is_placed then 'null_change_seq'
                when _change_seq is null then 'malformed_change_seq'
                when {{ afterimage._is_in_future() }} then 'future_change_seq'
                {%- if not settings.load_id and not settings.missing_operation %}
                -- as the rows of a full load of AWS DMS
                when not _has_operation then 'unknown_operation (none: set base for a full load)'
                {%- endif %}
                when _change_oper is null then 'unknown_operation'
                {%- if settings.load_id %}
                when _change_oper = 'L' and _load_id is null then 'null_load_id'
                {%- endif %}
            end
            {%- if mask %},
            if(
                _change_oper = 'U',
                {{ afterimage.change_mask_error(mask='_changed_mask', has_parts=true, **mask) | indent(16) }},
                null
            )
            {%- endif %}
            {%- if settings.changed_at %},
            if(
                _change_oper <> 'N' and _has_time and _changed_at is null,
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
        {%- set is_raw = 'reject_reason is not null or known_columns is not null' %}
        {%- if has_images %}
        xxhash64(
            {{ afterimage._record_hash(afterimage._hashed_of_image(data), none, data, is_raw) | indent(12) }},
            if(reject_reason is not null, coalesce(_record_text, _raw_record), null)
        ) as record_hash,
        _raw_record as raw_record
        {%- else %}
        {{ afterimage._record_hash(raw_columns, arrival, data, is_raw) | indent(8) }} as record_hash,
        {{ afterimage._raw_record(raw_columns) | indent(8) }} as raw_record
        {%- endif %}
        {%- for column in data %},
        {%- set absent = ["_change_oper = 'T'"] -%}
        {%- for other in unknown if other.name == column.name -%}
            {%- do absent.append(other.condition) -%}
        {%- endfor %}
        if({{ absent | join(' or ') }}, null, {{ afterimage._cast_column(column) }}) as {{ afterimage._quoted(column.name) }}
        {%- endfor %}
    from source
),

{{ afterimage._with_base_rows(macro_name, source_name, base, base_relation, settings, data, settings.pairs_before_images) }}
{%- endmacro %}
