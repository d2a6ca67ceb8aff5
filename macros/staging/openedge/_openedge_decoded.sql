{# Columns of the contract that stage_openedge decodes from a change. #}

{#
    known_columns of updates and before images: what is NULL and was not changed is unknown, as an update may leave it
    out. Without a field map nothing is said to be changed. The key identifies the row, and is always there.
#}
{% macro _openedge_known_columns(found, settings) -%}
    {%- set unknown = [] -%}
    {%- for column in found.data if column.name not in settings.key -%}
        {%- do unknown.append({
            'name': column.name,
            'condition': "(" ~ afterimage._quoted(column.raw_name) ~ " is null and not coalesce(array_contains(_changed_columns, "
            ~ afterimage._text(column.name) ~ "), false))",
        }) -%}
    {%- endfor -%}
{{ afterimage._known_columns("_change_oper in ('U', 'B')", found.data + found.added, unknown) }}
{%- endmacro %}


{# Which rows an operation on a partition or a tenant ends: those with its number in the column that a setting names. #}
{% macro _openedge_truncate_scope(settings) -%}
    {%- if not settings.partition_column and not settings.tenant_column -%}
        {{ return('cast(null as map<string, string>)') }}
    {%- endif -%}
case
    {%- if settings.partition_column %}
    when _operation in (6, 7, 8, 11)
        then map({{ afterimage._text(settings.partition_column) }}, cast(_partition_id as string))
    {%- endif %}
    {%- if settings.tenant_column %}
    when _operation in (9, 10)
        then map({{ afterimage._text(settings.tenant_column) }}, cast(_tenant_id as string))
    {%- endif %}
end
{%- endmacro %}


{# Why a record is not accepted, as far as it shows by itself. A pending half is not a record yet. #}
{% macro _openedge_reject_reason(found, tracked, settings, mask, has_halves) -%}
{%- set reasons -%}
case
    when _sequence is null then 'null_change_seq'
    when _sequence <= 0 then 'malformed_change_seq'
    when _change_oper is null then 'unknown_operation'
    -- a later format of the change table's records, which may hold values elsewhere
    when trim(_record_version) not in ('', '0', '1') then concat('unknown_version:', trim(_record_version))
    {%- if found.splits and settings.extract == 'sql' %}
    -- SQL joins split records: an extract that holds them was made otherwise
    when _is_split {{ 'and (_is_half or _is_unsupported) ' if found.splits == 'joined' -}}
        then 'split_record (set extract: abl)'
    {%- endif %}
    {%- if has_halves %}
    when _is_half then 'incomplete_record'
    {%- endif %}
    {%- if settings.extract == 'abl' %}
    when _is_unsupported then 'unsupported_record'
    {%- endif %}
    when
        {{ afterimage._openedge_has_no_scope((6, 7, 8, 11), settings.partition_column, '_partition_id') }}
        or {{ afterimage._openedge_has_no_scope((9, 10), settings.tenant_column, '_tenant_id') }}
        then 'unsupported_record'
    {%- if tracked.is_uncastable_time_stamp %}
    when
        {{ tracked.is_uncastable_time_stamp }}
        then {{ afterimage._text('uncastable_value:' ~ tracked.time_stamp.name) }}
    {%- endif %}
    {{- afterimage._when_uncastable(found.data) | indent }}
end
{%- endset -%}
{%- if mask -%}
{%- set reasons -%}
coalesce(
    {{ reasons | indent }},
    if(
        _change_oper in ('U', 'B'),
        {{ afterimage.change_mask_error('_field_map', found.mask, 'lsb_first', 0, mask.mask_type, true, 256) | indent(8) }},
        null
    )
)
{%- endset -%}
{%- endif -%}
{%- if has_halves -%}
if(
    _is_pending,
    null,
    {{ reasons | indent }}
)
{%- else -%}
{{ reasons }}
{%- endif -%}
{%- endmacro %}


{# Condition: an operation on a partition or a tenant of which the rows cannot be told. #}
{% macro _openedge_has_no_scope(operations, column, number) %}
    {%- set is_such = '_operation in (' ~ operations | join(', ') ~ ')' -%}
    {{ return('(' ~ is_such ~ ' and ' ~ number ~ ' is null)' if column else is_such) }}
{% endmacro %}
