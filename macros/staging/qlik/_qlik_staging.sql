{# Parts of stage_qlik_change_table. #}

{# Stops at an additional header column that the table lacks, or whose name is that of another column of the change. #}
{% macro _check_header_columns(macro, table, found, settings) %}
    {%- set data_names = found.data | map(attribute='name') | map('lower') | list -%}
    {%- for name in settings.header_columns if name not in found.headers -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `header_columns` of table " ~ table ~ " names `" ~ name ~ "`, and the table has no column `"
            ~ settings.header_prefix ~ name ~ "`. Its header columns: " ~ found.headers.values() | map(attribute='name') | join(', ')
            ~ ". Fix: correct the name, which is written without the prefix, or take it out of `header_columns`."
        ) }}
    {%- endfor -%}
    {%- for name in settings.header_columns if name in data_names + adapter.afterimage.reserved_columns() -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `header_columns` of table " ~ table ~ " names `" ~ name ~ "`, which takes the name of "
            ~ ("a data column" if name in data_names else "a column of the change log") ~ ". Fix: put a view over the table that"
            ~ " renames `" ~ found.headers[name].name ~ "` and keeps the order of the columns, and declare the view as the"
            ~ " source table; or take the name out of `header_columns`."
        ) }}
    {%- endfor -%}
{% endmacro %}


{#
    known_columns of a change table: NULL (all are known), except in updates and before images in which a LOB is NULL with
    its mask bit clear. The source sends a LOB only when it was changed, so there it is unknown and not NULL.
#}
{% macro _qlik_known_columns(found, byte_order) -%}
    {%- if not found.lobs -%}
        {{ return('cast(null as array<string>)') }}
    {%- endif -%}
    {%- set unknown = [] -%}
    {%- for lob in found.lobs -%}
        {%- set condition = afterimage._quoted(lob) ~ ' is null' -%}
        {%- if found.mask and lob in found.mask.columns -%}
            {%- set bit = found.mask.first_data_bit + found.mask.columns.index(lob) -%}
            {%- set form = afterimage._change_mask('_qlik_known_columns', found.mask.columns, byte_order, 0, found.mask.type) -%}
            {%- set word = afterimage._change_mask_word({}, bit, has_parts=true) -%}
            {#- without a mask the source does not say, and the bit counts as clear #}
            {%- set condition = condition ~ ' and coalesce(getbit(' ~ word ~ ', '
                ~ afterimage._change_mask_position(bit, form.byte_order) ~ '), 0) = 0' -%}
        {%- endif -%}
        {%- do unknown.append({'name': lob, 'condition': condition}) -%}
    {%- endfor -%}
{{ afterimage._known_columns("_change_oper in ('U', 'B')", found.data, unknown) }}
{%- endmacro %}
