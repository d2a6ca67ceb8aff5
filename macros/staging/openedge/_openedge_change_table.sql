{# The change table of stage_openedge: its columns and its rows. #}

{#
    What a change table holds: {own, data, added, mask, operation, sequence, has_landed_at}.

    own        OpenEdge's columns, see _openedge_own_columns
    data       the user's columns as _typed_column gives them
    added      columns that the tracking table adds: the same, with `sql`
    mask       the columns in the order of the field map
    operation  the change row's own operation, a number
    sequence   the place in the order of changes, a number
    splits     what becomes of a change split over several records: joined or rejected; none without a column that marks them
#}
{% macro _openedge_table(macro, table, raw_columns, settings) %}
    {%- if settings.policy_level < 2 -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `policy_level` of table " ~ table ~ " is " ~ settings.policy_level ~ ". Level "
            ~ settings.policy_level ~ " records that a row changed, and no values: there is no history of it. Allowed: 2, 3."
            ~ " Fix: read the table with openedge_activity, which shows who changed what when; or let the database's"
            ~ " administrator raise the level of the policy, and set `policy_level`."
        ) }}
    {%- endif -%}
    {%- set own = afterimage._openedge_own_columns(raw_columns) -%}
    {%- set needed = ['sequence'] -%}
    {%- if settings.policy_level == 3 -%}
        {%- do needed.append('operation') -%}
    {%- endif -%}
    {%- set has_positions = 'continuation_position' in own -%}
    {%- if settings.extract == 'abl' or (has_positions and settings.first_user_field is not none) -%}
        {%- do needed.extend(['operation', 'continuation_position', 'array_index', 'fragment']) -%}
    {%- endif -%}
    {%- do afterimage._check_openedge_columns(macro, table, raw_columns, own, needed) -%}
    {%- set splits = none -%}
    {%- if has_positions -%}
        {%- set splits = 'joined' if settings.first_user_field is not none else 'rejected' -%}
    {%- endif -%}

    {%- set declared = afterimage._declared_columns(settings) -%}
    {%- set data = [] -%}
    {%- for raw in raw_columns if not afterimage._is_openedge_column(raw.name) -%}
        {%- set is_array = raw.name | lower in settings.arrays | map('lower') | list -%}
        {%- if is_array -%}
            {#- decoded as soon as it is read #}
            {%- do data.append(afterimage._typed_column(raw.name, {'name': raw.name, 'data_type': 'array<string>'}, 'array<string>', true)) -%}
        {%- else -%}
            {%- do data.append(afterimage._typed_column(raw.name, raw, declared.get(raw.name | lower, {}).get('data_type'))) -%}
        {%- endif -%}
        {%- do data[-1].update({'raw': raw}) -%}
    {%- endfor -%}
    {%- if not data -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has columns of OpenEdge's only, whose names begin with `_`. Its columns: "
            ~ raw_columns | map(attribute='name') | join(', ') ~ ". Fix: extract the fields of the policy as well."
        ) }}
    {%- endif -%}
    {%- do afterimage._columns_of_setting(macro, table, 'arrays', settings.arrays, data) -%}
    {%- set names = data | map(attribute='name') | list -%}
    {%- set mask = afterimage._listed_mask_columns(macro, table, names, none, settings) or names -%}
    {%- for name in names if name not in mask -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: `mask_columns` of table " ~ table ~ " leaves out `" ~ name ~ "`; it must list every field of"
            ~ " the change table, in the order of the field map's bits. Fix: add the column."
        ) }}
    {%- endfor -%}

    {%- set added = [] -%}
    {%- for setting, sql, type in [
        ('partition_column', '_partition_id', 'int'),
        ('tenant_column', '_tenant_id', 'int'),
        ('recid_column', '_recid', 'bigint'),
    ] if settings[setting] and settings[setting] not in names -%}
        {%- do added.append({
            'name': settings[setting], 'raw_name': settings[setting], 'data_type': type, 'is_array': false, 'sql': sql,
        }) -%}
    {%- endfor -%}
    {{ return({
        'raw_columns': raw_columns,
        'own': own,
        'data': data,
        'added': added,
        'mask': mask,
        'operation_column': settings.operation_column,
        'operation': afterimage._openedge_own_operation(macro, table, raw_columns, own, settings),
        'sequence': afterimage._openedge_number(own, 'sequence', 'bigint'),
        'has_landed_at': 'landed_at' in own,
        'splits': splits,
    }) }}
{% endmacro %}


{#
    The operation of a change row, a number. An extract that joins the tracking rows has theirs too, which is 4 for both
    images of an update. Where there is no change row the tracking row's counts.
#}
{% macro _openedge_own_operation(macro, table, raw_columns, own, settings) %}
    {%- set names = raw_columns | map(attribute='name') | list -%}
    {%- if settings.operation_column -%}
        {%- set chosen = afterimage._same_name(settings.operation_column, names) -%}
        {%- if chosen is none -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `operation_column` of table " ~ table ~ " is `" ~ settings.operation_column ~ "`, which the"
                ~ " table does not have. Its columns: " ~ names | join(', ') ~ ". Fix: name the column with the change row's"
                ~ " own operation."
            ) }}
        {%- endif -%}
        {%- set sql = 'try_cast(' ~ afterimage._quoted(chosen) ~ ' as int)' -%}
        {{ return('coalesce(' ~ sql ~ ', ' ~ afterimage._openedge_number(own, 'operation') ~ ')') }}
    {%- endif -%}
    {%- set operations = [] -%}
    {%- for name in names if afterimage._is_openedge_column(name) and (name | lower | trim('_0123456789')).endswith('operation') -%}
        {%- do operations.append(name) -%}
    {%- endfor -%}
    {%- if settings.policy_level == 3 and operations | length > 1 -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has the columns " ~ operations | join(', ') ~ ", and `policy_level` is 3: of an"
            ~ " update the tracking row says 4, and its change rows say 3 and 4. Which column is the change row's cannot be"
            ~ " told. Fix: set `operation_column` in the table's `meta.afterimage` to the one that comes from the change"
            ~ " table, in which 3 occurs."
        ) }}
    {%- endif -%}
    {{ return(afterimage._openedge_number(own, 'operation')) }}
{% endmacro %}


{# The rows of the change table, under names of their own; arrays are decoded. #}
{% macro _openedge_captured_rows(found, tracked, relation) -%}
{#- the change alone: not what users and loaders write beside it -#}
{%- set hashed = [] -%}
{%- set misc = [found.own.get('landed_at'), found.own.get('user_misc'), found.own.get('misc')] -%}
{%- for column in found.raw_columns if column not in misc -%}
    {%- if column in found.own.values() or not afterimage._is_openedge_column(column.name)
        or column.name | lower == (found.operation_column or '') | lower -%}
        {%- do hashed.append(column) -%}
    {%- endif -%}
{%- endfor -%}
select
    {{ found.sequence }} as _sequence,
    {{ found.operation }} as _operation,
    {%- if tracked.raw_columns == found.raw_columns %}
    {%- for name, sql in afterimage._openedge_tracked_columns(tracked).items() if name != 'operation' %}
    {{ sql }} as _{{ name }},
    {%- endfor %}
    {%- endif %}
    {%- if found.splits %}
    {%- set position = afterimage._openedge_number(found.own, 'continuation_position') %}
    if({{ position }} > 0, {{ position }}, {{ afterimage._openedge_no_position() }}) as _position,
    {%- endif %}
    {%- if found.splits == 'joined' %}
    {{ afterimage._openedge_number(found.own, 'array_index') }} as _array_index,
    {{ afterimage._openedge_number(found.own, 'fragment') }} as _fragment,
    {%- endif %}
    {{ afterimage._column_as_text(found.own, 'landed_at') }} as _landed_at,
    {{ afterimage._record_hash(hashed, typed=found.data) | indent }} as _hash,
    {{ afterimage._raw_record(found.raw_columns) | indent }} as _raw_record
    {%- for column in found.data %},
    {%- if column.is_array and afterimage._normal_type(column.raw.data_type) != 'array<string>' %}
    {{ afterimage.openedge_array(afterimage._quoted(column.raw_name)) | indent }} as {{ afterimage._quoted(column.raw_name) }}
    {%- else %}
    {{ afterimage._quoted(column.raw_name) }}
    {%- endif %}
    {%- endfor %}
from {{ relation }}
-- collocates the records of a change once, for all computations on them and for the join
distribute by _sequence
{%- endmacro %}
