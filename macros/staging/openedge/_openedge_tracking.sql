{# The tracking table of stage_openedge: its columns and its rows. #}

{#
    How the tracking side of a change table is read: from the tracking table, or without one from the change table itself.
    {own, sequence, where, field_map, has_list, time_stamp, cast_time_stamp, is_uncastable_time_stamp, has_landed_at}
#}
{% macro _openedge_tracking(macro, source_name, tracking, relation, found, settings) %}
    {%- set table = source_name ~ '.' ~ tracking if tracking else settings.source_table -%}
    {%- set raw_columns = found.raw_columns -%}
    {%- if tracking -%}
        {%- set raw_columns = afterimage._landed_columns(macro, relation) or afterimage._settings(source_name, tracking).declared_columns -%}
    {%- endif -%}
    {%- set own = afterimage._openedge_own_columns(raw_columns) -%}
    {%- set needed = ['sequence', 'operation', 'time_stamp'] if tracking else ['time_stamp'] -%}
    {%- for setting, column in [
        ('partition_column', 'partition_id'), ('tenant_column', 'tenant_id'), ('recid_column', 'recid')
    ] if settings[setting] and settings[setting] in found.added | map(attribute='name') -%}
        {%- do needed.append(column) -%}
    {%- endfor -%}
    {%- if settings.other_policies -%}
        {%- do needed.append('policy_id') -%}
    {%- endif -%}
    {%- if settings.sparse_updates and 'changed_fields' not in own -%}
        {%- do needed.append('field_map') -%}
    {%- endif -%}
    {%- do afterimage._check_openedge_columns(macro, table, raw_columns, own, needed) -%}
    {%- if tracking and 'table_number' in own and settings.table_number is none -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ settings.source_table ~ " has no `table_number`, and " ~ table ~ " holds the changes of"
            ~ " all tables. Fix: set `table_number` in its `meta.afterimage` to the source table's number, which is"
            ~ " `_File._File-Number` in the database."
        ) }}
    {%- endif -%}
    {%- if settings.other_policies and not tracking -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has `other_policies`, and no `tracking`: its extract is joined already."
            ~ " Fix: remove the setting, and let the extract leave out the rows of those policies."
        ) }}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- if tracking and 'table_number' in own -%}
        {%- do conditions.append(afterimage._openedge_number(own, 'table_number') ~ ' = ' ~ settings.table_number) -%}
    {%- endif -%}
    {%- if settings.other_policies -%}
        {%- set others = [] -%}
        {%- for policy in settings.other_policies -%}
            {%- do others.append(afterimage._text(policy | trim)) -%}
        {%- endfor -%}
        {%- do conditions.append(
            "coalesce(trim(" ~ afterimage._column_as_text(own, 'policy_id') ~ "), '') not in (" ~ others | join(', ') ~ ")"
        ) -%}
    {%- endif -%}
    {%- set where = '\nwhere ' ~ conditions | join(' and ') if conditions else '' -%}
    {%- set time_stamp = afterimage._typed_column('_time_stamp', dict(own.time_stamp, name='_time_stamp'), 'timestamp') -%}
    {{ return({
        'raw_columns': raw_columns,
        'own': own,
        'sequence': afterimage._openedge_number(own, 'sequence', 'bigint'),
        'where': where,
        'field_map': afterimage._openedge_field_map(macro, table, own),
        'has_list': 'changed_fields' in own,
        'time_stamp': own.time_stamp,
        'cast_time_stamp': afterimage._cast_column(time_stamp),
        'is_uncastable_time_stamp': afterimage._is_uncastable(time_stamp) if time_stamp.is_cast else none,
        'has_landed_at': 'landed_at' in own,
    }) }}
{% endmacro %}


{# What the tracking table says of a change, in the columns that the reader of the change needs. #}
{% macro _openedge_tracked_columns(tracked) %}
    {%- set own = tracked.own -%}
    {{ return({
        'operation': afterimage._openedge_number(own, 'operation'),
        'time_stamp': afterimage._quoted(own.time_stamp.name),
        'tran_id': afterimage._column_as_text(own, 'tran_id'),
        'field_map': tracked.field_map.sql,
        'changed_fields': afterimage._column_as_text(own, 'changed_fields'),
        'partition_id': afterimage._openedge_number(own, 'partition_id'),
        'tenant_id': afterimage._openedge_number(own, 'tenant_id'),
        'recid': afterimage._openedge_number(own, 'recid', 'bigint'),
        'user_name': afterimage._column_as_text(own, 'user_name'),
        'record_version': afterimage._column_as_text(own, 'record_version'),
    }) }}
{% endmacro %}


{#
    The rows of the tracking table that concern the table, one per place in the order. By one reading of the vendor's page
    an update at level 3 may have two, of the operations 3 and 4: then the later one counts.
#}
{% macro _openedge_tracking_rows(tracked, relation) -%}
{%- set hashed = [] -%}
{%- for name in ['operation', 'field_map', 'changed_fields', 'partition_id', 'tenant_id', 'recid'] if name in tracked.own -%}
    {%- do hashed.append(tracked.own[name]) -%}
{%- endfor -%}
select
    _sequence,
    max_by(
        struct(
            {%- for name in afterimage._openedge_tracked_columns(tracked) %}
            {{ name }},
            {%- endfor %}
            hash,
            raw_record
        ),
        struct(operation <> 3, hash)
    ) as tracked,
    min(landed_at) as landed_at
from (
    select
        {{ tracked.sequence }} as _sequence,
        {%- for name, sql in afterimage._openedge_tracked_columns(tracked).items() %}
        {{ sql }} as {{ name }},
        {%- endfor %}
        {{ afterimage._column_as_text(tracked.own, 'landed_at') }} as landed_at,
        {{ afterimage._record_hash(hashed) | indent(8) }} as hash,
        {{ afterimage._raw_record(tracked.raw_columns) | indent(8) }} as raw_record
    from {{ relation }}
    {{- tracked.where | indent }}
) as of_table
group by _sequence, if(_sequence is null, hash, null)
{%- endmacro %}
