{#
    The fields that a field map of OpenEdge declares changed: array<string>, in the order of the fields; NULL for NULL.

    Bit n, from 1, is the n-th of the user's fields by their place in the change table; byte 1 comes first, and in it the
    least significant bit: fields 1, 2 and 5 are 0x13. A short map leaves the other fields unchanged. That is the order of
    a binary change mask whose first bit is the first field, so it is read by the same macro.

    Arguments:
      field_map     the map, up to 256 bytes: `_Change-FieldMap`, or `_Source-FieldMap` in older databases
      data_columns  the columns by the order of their fields
      map_type      binary, or string for hex text
      has_parts     the map's parts were selected before, see change_mask_parts
#}
{% macro openedge_field_map_columns(field_map, data_columns, map_type='binary', has_parts=false) -%}
{{ afterimage.change_mask_columns(field_map, data_columns, 'lsb_first', 0, map_type, has_parts) }}
{%- endmacro %}
