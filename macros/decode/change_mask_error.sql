{#
    The reject reason of a change mask of Qlik Replicate that cannot be meant for these columns, else NULL:

    malformed_mask   text that is not hex
    mask_too_wide    more than `bytes_at_most` bytes (the vendor's varbinary(128)), or a bit beyond the last column

    Bits of header columns are not an error, since vendors contradict themselves there: the test change_mask_fits checks them.
#}
{% macro change_mask_error(
    mask, data_columns, byte_order='auto', first_data_bit=0, mask_type='string', has_parts=false,
    bytes_at_most=128
) -%}
    {%- set form = afterimage._change_mask('change_mask_error', data_columns, byte_order, first_data_bit, mask_type) -%}
    {%- set parts = afterimage.change_mask_parts(mask, data_columns, byte_order, first_data_bit, mask_type) -%}
    {%- set bytes = '_mask_bytes' if form.is_text and has_parts else afterimage._change_mask_bytes(mask, form) -%}
    {%- set stored = 8 * form.words -%}
    {%- if form.byte_order == 'msb_first' -%}
        {%- set excess = "substr(" ~ bytes ~ ", 1, length(" ~ bytes ~ ") - " ~ stored ~ ")" -%}
    {%- else -%}
        {%- set excess = "substr(" ~ bytes ~ ", " ~ (stored + 1) ~ ")" -%}
    {%- endif -%}
    {%- set beyond = afterimage._change_mask_beyond(afterimage._change_mask_word(parts, form.width - 1, has_parts), form) -%}
case
    {%- if form.is_text %}
    when {{ bytes }} is null and {{ mask }} is not null then 'malformed_mask'
    {%- endif %}
    when length({{ bytes }}) > {{ bytes_at_most }} then 'mask_too_wide'
    {%- if stored < bytes_at_most %}
    when
        length({{ bytes }}) > {{ stored }}
        and hex({{ excess }}) rlike '[^0]'
        then 'mask_too_wide'
    {%- endif %}
    {%- if beyond %}
    when {{ beyond }} then 'mask_too_wide'
    {%- endif %}
end
{%- endmacro %}
