{#
    Generic test of a staging model of Qlik Replicate: its change masks mean what the settings say.

    Vendors contradict themselves on byte order and first bit, and a wrong reading is no error anywhere else: it only names
    the wrong columns. What must hold: an insert sets no bit before the first data column; a delete sets the bits of the
    key; an update sets the bits of the columns that differ from its before image, but for `lob_columns`.
    Masks that are rejected anyway are left out; so are updates that have several copies.

    When it fails, its rows say which settings read those masks how well: `is_set` marks the present ones, `fitting` counts.
    The bits are read another way than by change_mask_columns, which is compared with what the data shows.
#}
{% test change_mask_fits(model) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set node = afterimage._tested_node() -%}
    {%- if not node.sources -%}
        {{ exceptions.raise_compiler_error(
            "`change_mask_fits` on " ~ node.name ~ ": it stands on a staging model, and this model reads no source table."
            ~ " Move it to the model that calls stage_qlik_change_table."
        ) }}
    {%- endif -%}
    {%- set table = node.sources[0] | join('.') -%}
    {%- set relation = source(*node.sources[0]) -%}
    {%- set settings = afterimage._settings(*node.sources[0]) -%}
    {%- set raw_columns = afterimage._raw_columns(relation) -%}
    {%- if not raw_columns -%}
        {%- do afterimage._stop_for_missing('change_mask_fits', relation) -%}
    {%- endif -%}
    {%- set found = afterimage._qlik_change_table('change_mask_fits', table, raw_columns, settings) -%}
    {%- if not found.mask -%}
        {{ exceptions.raise_compiler_error(
            "`change_mask_fits` on " ~ node.name ~ ": table " ~ table ~ " stores no change mask. Remove the test."
        ) }}
    {%- endif -%}
    {%- set layouts = afterimage._change_mask_layouts(found, settings) -%}
    {%- set compared = found.data | rejectattr('name', 'in', found.lobs) | map(attribute='name') | list -%}
    {%- set key = afterimage._columns_of_setting('change_mask_fits', table, 'key', settings.key, found.data) -%}
    {%- set operation = afterimage._quoted(found.headers.operation.name) if 'operation' in found.headers else none -%}
    {%- set change_seq = afterimage._quoted(found.headers.change_seq.name) -%}
    {%- set mask = afterimage._quoted(found.mask.column) -%}
    {%- set form = layouts[0].form -%}
    {%- set width = found.mask.columns | length -%}
with

records as (
    select
        {{ change_seq }} as _change_seq,
        {{ afterimage.qlik_change_operation(afterimage._quoted(found.headers.change_oper.name), operation) | indent(8) }} as _change_oper,
        {{ afterimage._change_mask_bytes(mask, form) }} as _mask,
        {{ afterimage._listed(compared) }}
    from {{ relation }}
),

paired as (
    select
        *,
        count(*) over (partition by _change_seq) = 2
        and count_if(_change_oper = 'B') over (partition by _change_seq) = 1 as _is_pair,
        max_by(
            struct({{ afterimage._listed(compared) | replace('\n        ', ' ') }}), _change_oper = 'B'
        ) over (partition by _change_seq) as _before
    from records
    where _change_oper in ('I', 'U', 'D', 'B')
),

-- the places, from 0, of the data columns whose bit must be set
expected as (
    select
        _change_seq,
        _change_oper,
        _mask,
        case
            when _change_oper = 'D'
                then array({% for name in key %}{{ found.mask.columns.index(name) }}{{ ', ' if not loop.last }}{% endfor %})
            when _change_oper = 'U' and _is_pair
                then array_compact(
                    array(
                        {%- for name in compared %}
                        if(
                            _before.{{ afterimage._quoted(name) }} <=> {{ afterimage._quoted(name) }},
                            null,
                            {{ found.mask.columns.index(name) }}
                        ){{ ',' if not loop.last }}
                        {%- endfor %}
                    )
                )
            else array()
        end as _expected
    from paired
    where _change_oper <> 'B' and _mask is not null
),

-- the bits that are set, read in both byte orders
masks as (
    select
        _change_seq,
        _change_oper,
        _expected,
        {%- for byte_order in ['msb_first', 'lsb_first'] %}
        case
            when length(_mask) > 0
                then filter(
                    sequence(0, 8 * length(_mask) - 1),
                    _bit -> getbit(
                        cast(
                            conv(
                                hex(
                                    substr(
                                        _mask,
                                        {{ 'length(_mask) - _bit div 8' if byte_order == 'msb_first' else '_bit div 8 + 1' }},
                                        1
                                    )
                                ),
                                16,
                                10
                            ) as int
                        ),
                        _bit % 8
                    ) = 1
                )
            else array()
        end as {{ byte_order }}{{ ',' if not loop.last }}
        {%- endfor %}
    from expected
),

misfits as (
    select *
    from masks
    where
        -- a bit beyond the last column is a reason to reject the record
        coalesce(array_max({{ form.byte_order }}) < {{ layouts[0].first_data_bit + width }}, true)
        and not {{ afterimage._change_mask_fits(layouts[0], width) | indent(8) }}
)
{% for layout in layouts %}
{{ 'union all\n' if not loop.first -}}
select
    {{ afterimage._text(layout.byte_order) }} as mask_byte_order,
    {{ layout.first_data_bit }} as mask_first_data_bit,
    {{ 'true' if loop.first else 'false' }} as is_set,
    count(*) as misfits,
    count_if(
        {{ afterimage._change_mask_fits(layout, width) | indent(8) }}
    ) as fitting,
    min(_change_seq) as first_change_seq
from misfits
having count(*) > 0
{%- endfor %}
{% endtest %}


{# The layouts to try, the present one first: {byte_order, first_data_bit, form}. #}
{% macro _change_mask_layouts(found, settings) %}
    {%- set form = afterimage._change_mask('change_mask_fits', found.mask.columns, settings.mask_byte_order, 0, found.mask.type) -%}
    {%- set other = {'msb_first': 'lsb_first', 'lsb_first': 'msb_first'}[form.byte_order] -%}
    {%- set bits = [found.mask.first_data_bit] -%}
    {%- for bit in [0, found.headers | length] if bit not in bits -%}
        {%- do bits.append(bit) -%}
    {%- endfor -%}
    {%- set layouts = [] -%}
    {%- for bit in bits -%}
        {%- for byte_order in [form.byte_order, other] -%}
            {%- do layouts.append({'byte_order': byte_order, 'first_data_bit': bit, 'form': form}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(layouts) }}
{% endmacro %}


{# Condition: read this way a mask has the bits that it must have, none beyond the last column, and on an insert none before the first. #}
{% macro _change_mask_fits(layout, width) -%}
(
    size(
        array_except(
            transform(_expected, _place -> _place + {{ layout.first_data_bit }}),
            {{ layout.byte_order }}
        )
    ) = 0
    and coalesce(array_max({{ layout.byte_order }}) < {{ layout.first_data_bit + width }}, true)
    and coalesce(_change_oper <> 'I' or array_min({{ layout.byte_order }}) >= {{ layout.first_data_bit }}, true)
)
{%- endmacro %}
