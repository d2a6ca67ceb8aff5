{#
    Generic test of a staging model of Qlik Replicate: its change masks mean what the settings say.

    Vendors contradict themselves on byte order and first bit, and a wrong reading causes no error anywhere else: it only names
    the wrong columns. What must hold: an insert sets no bit before the first data column; a delete sets the bits of the
    key; an update sets the bits of the columns that differ from its before image, except `lob_columns`.
    Masks that are rejected anyway count only where other settings fit them; updates that have several copies do not count.

    When it fails, its row says how many masks do not fit, and whether other settings fit more of them, or which columns are
    likely to be large objects.
    The bits are read another way than by change_mask_columns, which is compared with what the data shows.

    Arguments:
      tolerated_share  of the masks, how many may not fit, from 0 to 1, as long as no other settings fit them all.
                       Unless it is 0, one odd mask is tolerated too, if other masks fit: in a small table one mask
                       is more than the share
#}
{% test change_mask_fits(model, tolerated_share=0.01) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_share('change_mask_fits', 'tolerated_share', tolerated_share, '0.01 for one mask in a hundred') -%}
    {%- set node = afterimage._tested_node() -%}
    {%- if not node.sources -%}
        {{ exceptions.raise_compiler_error(
            "`change_mask_fits` on " ~ node.name ~ ": the test belongs to a staging model, and this model reads no source table."
            ~ " Fix: move it to the model that calls stage_qlik_change_table."
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

-- a mask with a bit beyond the last column is a reason to reject the record
judged as (
    select
        *,
        coalesce(array_max({{ form.byte_order }}) >= {{ layouts[0].first_data_bit + width }}, false) as _is_rejected
    from masks
),

counted as (
    select
        count_if(not _is_rejected) as records,
        count(*) as masks,
        {%- for layout in layouts %}
        count_if(
            {{ afterimage._change_mask_fits(layout, width) | indent(12) }}
        ) as fitting_{{ loop.index0 }},
        {%- endfor %}
        -- places of columns that updates change and whose bit none of them sets
        array_sort(
            array_except(
                array_distinct(flatten(collect_set(if(_change_oper = 'U', _expected, null)))),
                transform(
                    array_distinct(flatten(collect_set(if(_change_oper = 'U', {{ form.byte_order }}, null)))),
                    _bit -> _bit - {{ layouts[0].first_data_bit }}
                )
            )
        ) as never_set,
        min(
            if(
                {{ afterimage._change_mask_fits(layouts[0], width) | indent(16) }},
                null,
                struct(_is_rejected, _change_seq, _change_oper)
            )
        ) as first_misfit
    from judged
),

-- of layouts that fit as many, the first
compared as (
    select
        records,
        masks,
        fitting_0 as fitting,
        first_misfit,
        concat_ws(
            ', ',
            transform(
                never_set,
                _place -> element_at(array({% for name in found.mask.columns %}{{ afterimage._text(name) }}{{ ', ' if not loop.last }}{% endfor %}), _place + 1)
            )
        ) as never_set,
        array_max(
            array(
                {%- for layout in layouts %}
                struct(
                    fitting_{{ loop.index0 }} as fitting,
                    -{{ loop.index0 }} as preference,
                    {{ afterimage._text(layout.byte_order) }} as mask_byte_order,
                    {{ layout.first_data_bit }} as mask_first_data_bit
                ){{ ',' if not loop.last }}
                {%- endfor %}
            )
        ) as best
    from counted
)

select
    records,
    fitting,
    best.fitting as best_fitting,
    best.mask_byte_order,
    best.mask_first_data_bit,
    concat(
        format_number(if(best.fitting > fitting, masks, records) - fitting, 0), ' of ',
        format_number(if(best.fitting > fitting, masks, records), 0),
        {{ afterimage._text(' change masks of ' ~ table ~ ' do not fit the settings, the first ') }},
        case first_misfit._change_oper when 'I' then 'of an insert' when 'D' then 'of a delete' else 'of an update' end,
        ' at change_seq ', first_misfit._change_seq,
        if(
            best.fitting > fitting,
            concat(
                '; ', format_number(best.fitting, 0), ' fit mask_byte_order ', best.mask_byte_order,
                ' and mask_first_data_bit ', best.mask_first_data_bit,
                '. Fix: set these two in its `meta.afterimage`'
            ),
            if(
                never_set <> '',
                concat(
                    '; no update sets the bit of ', never_set,
                    ', which some change. Fix: if these are large objects, name them in `lob_columns`'
                ),
                '; no other settings fit more. Fix: if the source writes such masks, raise `tolerated_share` of this test'
            )
        )
    ) as what_is_wrong
from compared
where
    (
        best.fitting > fitting
        and masks - best.fitting <= masks * {{ tolerated_share if tolerated_share < 1 else 0 }}
    )
    or (
        fitting < records
        and (
            {{ 'fitting = 0' if tolerated_share < 1 else 'false' }}
            or records - fitting > {{ 'greatest(1, records * ' ~ tolerated_share ~ ')' if tolerated_share else 0 }}
        )
    )
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
