{#
    Generic test of a staging model of Qlik Replicate: its change masks mean what the settings say.

    Vendors contradict themselves on byte order and first bit, and a wrong reading is no error anywhere else: it only names
    the wrong columns. What must hold: an insert sets no bit before the first data column; a delete sets the bits of the
    key; an update sets the bits of the columns that differ from its before image, but for `lob_columns`.
    Masks that are rejected anyway are left out; so are updates that have several copies.

    When it fails, its rows say which settings read those masks how well: `is_set` marks the present ones, `fitting` counts.
    At most 1,000 masks that do not fit are tried.
#}
{% test change_mask_fits(model) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set node = _tested_node() -%}
    {%- if not node.sources -%}
        {{ exceptions.raise_compiler_error(
            "`change_mask_fits` on " ~ node.name ~ ": it stands on a staging model, and this model reads no source table."
            ~ " Move it to the model that calls stage_qlik_change_table."
        ) }}
    {%- endif -%}
    {%- set table = node.sources[0] | join('.') -%}
    {%- set relation = source(*node.sources[0]) -%}
    {%- set settings = _settings(*node.sources[0]) -%}
    {%- set found = _qlik_change_table('change_mask_fits', table, _raw_columns(relation), settings) -%}
    {%- if not found.mask -%}
        {{ exceptions.raise_compiler_error(
            "`change_mask_fits` on " ~ node.name ~ ": table " ~ table ~ " stores no change mask. Remove the test."
        ) }}
    {%- endif -%}
    {%- set layouts = _change_mask_layouts(found, settings) -%}
    {%- set data = found.data | rejectattr('name', 'in', found.lobs) | map(attribute='name') | list -%}
    {%- set operation = _quoted(found.headers.operation.name) if 'operation' in found.headers else none -%}
    {%- set change_seq = _quoted(found.headers.change_seq.name) -%}
    {%- set mask = _quoted(found.mask.column) -%}
with

records as (
    select
        {{ change_seq }} as _change_seq,
        {{ qlik_change_operation(_quoted(found.headers.change_oper.name), operation) | indent(8) }} as _change_oper,
        {{ mask }} as _mask,
        {{ _listed(data) }}
    from {{ relation }}
),

paired as (
    select
        *,
        count(*) over (partition by _change_seq) = 2
        and count_if(_change_oper = 'B') over (partition by _change_seq) = 1 as _is_pair,
        max_by(struct({{ _listed(data) | replace('\n        ', ' ') }}), _change_oper = 'B')
            over (partition by _change_seq) as _before
    from records
    where _change_oper in ('I', 'U', 'D', 'B')
),

masks as (
    select
        _change_seq,
        _change_oper,
        _mask,
        case
            when _change_oper = 'D'
                then array({{ _texts(_columns_of_setting('change_mask_fits', table, 'key', settings.key, found.data)) }})
            when _change_oper = 'U' and _is_pair
                then array_compact(
                    array(
                        {%- for name in data %}
                        if(_before.{{ _quoted(name) }} <=> {{ _quoted(name) }}, null, {{ _text(name) }}){{ ',' if not loop.last }}
                        {%- endfor %}
                    )
                )
            else array()
        end as _expected
    from paired
    where _change_oper <> 'B' and _mask is not null
),

misfits as (
    select *
    from masks
    where
        {{ change_mask_error('_mask', **layouts[0].arguments) | indent(8) }} is null
        and not {{ _change_mask_fits(layouts[0]) | indent(8) }}
    limit 1000
)
{%- for layout in layouts %}

{{ 'union all' if not loop.first }}
select
    {{ _text(layout.arguments.byte_order) }} as mask_byte_order,
    {{ layout.first_data_bit }} as mask_first_data_bit,
    {{ 'true' if loop.first else 'false' }} as is_set,
    count(*) as misfits,
    count_if({{ _change_mask_fits(layout) | indent(4) }}) as fitting,
    min(_change_seq) as first_change_seq
from misfits
having count(*) > 0
{%- endfor %}
{% endtest %}


{# The layouts to try, the present one first: {first_data_bit, headers, arguments for the macros on masks}. #}
{% macro _change_mask_layouts(found, settings) %}
    {%- set form = _change_mask('change_mask_fits', found.mask.columns, settings.mask_byte_order, 0, found.mask.type) -%}
    {%- set others = ['msb_first', 'lsb_first'] | reject('equalto', form.byte_order) | list -%}
    {%- set bits = [found.mask.first_data_bit] -%}
    {%- for bit in [0, found.headers | length] if bit not in bits -%}
        {%- do bits.append(bit) -%}
    {%- endfor -%}
    {%- set layouts = [] -%}
    {%- for bit in bits -%}
        {%- for byte_order in [form.byte_order] + others -%}
            {%- set headers = [] -%}
            {%- for number in range(bit) -%}
                {%- do headers.append('(bit ' ~ number ~ ')') -%}
            {%- endfor -%}
            {%- do layouts.append({
                'first_data_bit': bit,
                'headers': headers,
                'arguments': {
                    'data_columns': headers + found.mask.columns,
                    'byte_order': byte_order,
                    'mask_type': found.mask.type,
                },
            }) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(layouts) }}
{% endmacro %}


{# Condition: a mask, read this way, declares what it must and no header column of an insert. #}
{% macro _change_mask_fits(layout) -%}
coalesce(
    {{ change_mask_error('_mask', **layout.arguments) | indent }} is null
    and size(
        array_except(
            _expected,
            {{ change_mask_columns('_mask', **layout.arguments) | indent(12) }}
        )
    ) = 0
    {%- if layout.headers %}
    and (
        _change_oper <> 'I'
        or not arrays_overlap(
            array({{ _texts(layout.headers) }}),
            {{ change_mask_columns('_mask', **layout.arguments) | indent(12) }}
        )
    )
    {%- endif %},
    false
)
{%- endmacro %}
