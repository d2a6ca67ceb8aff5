{#
    The columns in DETAILS of Qlik's control table `attrep_ddl_history`: what a DDL statement made of a source table, with
    the ordinals that masks count from then on. In the order of the ordinals; NULL for text that is not such JSON.
#}
{% macro qlik_ddl_columns(details) -%}
array_sort(
    transform(
        map_entries(
            from_json(
                {{ details }},
                'columns map<string, struct<columnNewName string, action string, type string, length int, precision int, '
                || 'scale int, primaryKeyPosition int, nullable boolean, ordinal int>>'
            ).columns
        ),
        entry -> named_struct(
            'ordinal', entry.value.ordinal,
            'column_name', entry.key,
            'new_name', nullif(entry.value.columnnewname, ''),
            'action', nullif(entry.value.action, ''),
            'type', trim(entry.value.type),
            'length', entry.value.length,
            'precision', entry.value.precision,
            'scale', entry.value.scale,
            'primary_key_position', entry.value.primarykeyposition,
            'nullable', entry.value.nullable
        )
    )
)
{%- endmacro %}
