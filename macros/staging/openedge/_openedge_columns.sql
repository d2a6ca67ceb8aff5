{#
    What the columns of OpenEdge's tracking table and of a change table are, told from their names.

    Older databases name some of them otherwise, and loaders turn hyphens into underscores: both spellings are the same
    here, as are capitals and small letters. Sources: the vendor's pages "Change Tracking Table" and "Change Table".
#}

{# Whether a column is OpenEdge's own: its names begin with `_`, and a user's field may not. #}
{% macro _is_openedge_column(name) %}
    {{ return(name.startswith('_') or name | lower == 'changed_fields') }}
{% endmacro %}


{# OpenEdge's own columns among raw columns: name in this project -> raw column {name, data_type}. #}
{% macro _openedge_own_columns(raw_columns) %}
    {%- set names = {
        'tran_id': 'tran_id',
        'time_stamp': 'time_stamp',
        'change_sequence': 'sequence',
        'operation': 'operation',
        'continuation_position': 'continuation_position',
        'arrayindex': 'array_index',
        'array_index': 'array_index',
        'fragment': 'fragment',
        'policy_id': 'policy_id',
        'change_fieldmap': 'field_map',
        'source_fieldmap': 'field_map',
        'changed_fields': 'changed_fields',
        'recid': 'recid',
        'source_rowid': 'recid',
        'source_table_number': 'table_number',
        'partition_id': 'partition_id',
        'source_partition_id': 'partition_id',
        'tenant_id': 'tenant_id',
        'user_misc': 'user_misc',
        'user_name': 'user_name',
        'version': 'record_version',
        'misc': 'misc',
        'landed_at': 'landed_at',
    } -%}
    {%- set own = {} -%}
    {%- for column in raw_columns if afterimage._is_openedge_column(column.name) -%}
        {%- set name = names.get(column.name | lower | replace('-', '_') | trim('_')) -%}
        {%- if name and name not in own -%}
            {%- do own.update({name: column}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(own) }}
{% endmacro %}


{# Stops where a table lacks one of OpenEdge's columns that its reader cannot do without. #}
{% macro _check_openedge_columns(macro, table, raw_columns, own, needed) %}
    {%- set spelling = {
        'sequence': '_Change-Sequence', 'operation': '_Operation', 'table_number': '_Source-Table-Number',
        'time_stamp': '_Time-Stamp', 'continuation_position': '_Continuation-Position', 'array_index': '_ArrayIndex',
        'fragment': '_Fragment', 'field_map': '_Change-FieldMap', 'changed_fields': 'changed_fields',
        'partition_id': '_Partition-Id', 'tenant_id': '_Tenant-Id', 'recid': '_Recid', 'policy_id': '_Policy-Id',
    } -%}
    {%- for name in needed if name not in own -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has no column `" ~ spelling[name] ~ "`. Its columns: "
            ~ raw_columns | map(attribute='name') | join(', ') ~ ". Fix: extract the column; its name may have underscores"
            ~ " for hyphens." ~ (
                " If updates have the values of all fields, set `sparse_updates: false` instead." if name == 'field_map' else ""
            )
        ) }}
    {%- endfor -%}
{% endmacro %}


{# An own column as a number; NULL where it is not stored, or is none. #}
{% macro _openedge_number(own, name, type='int') %}
    {%- if name not in own -%}
        {{ return('cast(null as ' ~ type ~ ')') }}
    {%- elif afterimage._normal_type(own[name].data_type) == type -%}
        {{ return(afterimage._quoted(own[name].name)) }}
    {%- endif -%}
    {{ return('try_cast(' ~ afterimage._quoted(own[name].name) ~ ' as ' ~ type ~ ')') }}
{% endmacro %}


{# The field map with its type, binary or hex text; a NULL of that type where it is not stored. #}
{% macro _openedge_field_map(macro, table, own) %}
    {%- if 'field_map' not in own -%}
        {{ return({'sql': 'cast(null as binary)', 'type': 'binary', 'is_stored': false}) }}
    {%- endif -%}
    {%- set type = afterimage._normal_type(own.field_map.data_type) -%}
    {%- if type not in ['binary', 'string'] -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `" ~ own.field_map.name ~ "` of table " ~ table ~ " is of type " ~ own.field_map.data_type
            ~ "; allowed: binary, string (hex text). Fix: let the extract hold the raw bytes, or their hex digits."
        ) }}
    {%- endif -%}
    {{ return({'sql': afterimage._quoted(own.field_map.name), 'type': type, 'is_stored': true}) }}
{% endmacro %}


{# The change_seq of a sequence number: 19 digits. NULL for no number, and for 0, which means a full load. #}
{% macro _openedge_change_seq(sequence) %}
    {{ return("if(" ~ sequence ~ " > 0, lpad(cast(" ~ sequence ~ " as string), 19, '0'), null)") }}
{% endmacro %}
