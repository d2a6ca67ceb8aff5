{# Parts of stage_openedge. #}

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

    {%- set types = {} -%}
    {%- for column in settings.declared_columns -%}
        {%- do types.update({column.name | lower: column.data_type}) -%}
    {%- endfor -%}
    {%- set data = [] -%}
    {%- for raw in raw_columns if not afterimage._is_openedge_column(raw.name) -%}
        {%- set is_array = raw.name | lower in settings.arrays | map('lower') | list -%}
        {%- if is_array -%}
            {#- decoded as soon as it is read #}
            {%- do data.append(afterimage._typed_column(raw.name, {'name': raw.name, 'data_type': 'array<string>'}, 'array<string>', true)) -%}
        {%- else -%}
            {%- do data.append(afterimage._typed_column(raw.name, raw, types.get(raw.name | lower))) -%}
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
    {%- set mask = names -%}
    {%- if settings.mask_columns -%}
        {%- set mask = [] -%}
        {%- for listed in settings.mask_columns -%}
            {%- do mask.append(afterimage._same_name(listed, names)) -%}
        {%- endfor -%}
        {%- for name in names if name not in mask -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: `mask_columns` of table " ~ table ~ " leaves out `" ~ name ~ "`; it must list every field of"
                ~ " the change table, in the order of the field map's bits. Fix: add the column."
            ) }}
        {%- endfor -%}
    {%- endif -%}

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
            "coalesce(trim(" ~ afterimage._openedge_text(own, 'policy_id') ~ "), '') not in (" ~ others | join(', ') ~ ")"
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
        'tran_id': afterimage._openedge_text(own, 'tran_id'),
        'field_map': tracked.field_map.sql,
        'changed_fields': afterimage._openedge_text(own, 'changed_fields'),
        'partition_id': afterimage._openedge_number(own, 'partition_id'),
        'tenant_id': afterimage._openedge_number(own, 'tenant_id'),
        'recid': afterimage._openedge_number(own, 'recid', 'bigint'),
        'user_name': afterimage._openedge_text(own, 'user_name'),
        'record_version': afterimage._openedge_text(own, 'record_version'),
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
        {{ afterimage._openedge_text(tracked.own, 'landed_at') }} as landed_at,
        {{ afterimage._record_hash(hashed) | indent(8) }} as hash,
        {{ afterimage._raw_record(tracked.raw_columns) | indent(8) }} as raw_record
    from {{ relation }}
    {{- tracked.where | indent }}
) as of_table
group by _sequence, if(_sequence is null, hash, null)
{%- endmacro %}


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
    {{ afterimage._openedge_text(found.own, 'landed_at') }} as _landed_at,
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


{#
    CTEs that make one row of the records of a split change. A change near the record limit is stored as two records, or
    more: a record's `_Continuation-Position` is the field that it holds last as a whole, its `_ArrayIndex` the last whole
    element where it ends within an array, and `_Fragment` 1 says that what comes next was cut in two. So fields up to that
    position are the record's, the field behind it is put together, the others are those of the next records. The last
    record has position 0, or that of the last field. No two records of a change share a position: it is part of the
    table's unique index. A position is the field's `_Field-Physpos`; `first_user_field` is that of the first one. Where it
    is not known the records become one row that is rejected, with all of them as its raw record.
#}
{% macro _openedge_whole_rows(found, settings) -%}
{#- not named in a WINDOW clause: Iceberg reads views after Spark has put such names in their places -#}
{%- set key = '_sequence, _operation, if(_sequence is null, _hash, null)' -%}
{%- set same_change = '(partition by ' ~ key ~ ')' -%}
split_rows as (
    select
        *,
        min(_position) over {{ same_change }} < {{ afterimage._openedge_no_position() }} as _is_split,
        row_number() over (
            partition by {{ key }} order by _position, _hash
        ) as _number,
        max(_landed_at) over {{ same_change }} as _last_landed_at,
        sort_array(collect_list(_hash) over {{ same_change }}) as _hashes,
        collect_list(_raw_record) over {{ same_change }} as _raw_records
        {%- if found.splits == 'joined' %},
        collect_list(_position) over {{ same_change }} as _positions,
        collect_list(
            struct(
                _position, _array_index, _fragment,
                {{ afterimage._listed(found.data | map(attribute='raw_name') | list, indent=16) }}
            )
        ) over (
            partition by {{ key }} order by _position, _hash
            rows between 1 following and unbounded following
        ) as _rest
        {%- endif %}
    from distinct_rows
),

{% if found.splits == 'joined' -%}
joined_rows as (
    select
        *,
        if(
            _is_split,
            {{ afterimage._openedge_joined_values(found, settings) | indent(12) }},
            null
        ) as _whole
    from split_rows
    where not _is_split or _number = 1
),

{% endif -%}
whole_rows as (
    select
        * except (
            _landed_at, _hash, _raw_record
            {%- if found.splits == 'joined' -%}
            , {{ afterimage._listed(found.data | map(attribute='raw_name') | list) | replace('\n        ', ' ') }}
            {%- endif %}
        ),
        {%- if found.splits == 'joined' %}
        {%- set last = settings.first_user_field + found.mask | length - 1 %}
        _is_split
        and (size(_positions) = 1 or array_max(_positions) < {{ last }}) as _is_half,
        _is_split and array_distinct(_positions) <> _positions as _is_unsupported,
        {%- else %}
        false as _is_half,
        _is_split as _is_unsupported,
        {%- endif %}
        if(_is_split, _last_landed_at, _landed_at) as _landed_at,
        if(_is_split, xxhash64(_hashes), _hash) as _hash,
        if(_is_split, concat('[', array_join(_raw_records, ','), ']'), _raw_record) as _raw_record
        {%- if found.splits == 'joined' %}
        {%- for name in found.data | map(attribute='raw_name') %},
        if(_is_split, _whole.{{ afterimage._quoted(name) }}, {{ afterimage._quoted(name) }}) as {{ afterimage._quoted(name) }}
        {%- endfor %}
        {%- endif %}
    from {{ 'joined_rows' if found.splits == 'joined' else 'split_rows' }}
    {%- if found.splits != 'joined' %}
    where not _is_split or _number = 1
    {%- endif %}
),
{%- endmacro %}


{# The position of a record that no other one follows: behind every field. #}
{% macro _openedge_no_position() %}
    {{ return(2147483647) }}
{% endmacro %}


{# A struct of the values of a split change: the first record, with what each of the others adds to it. #}
{% macro _openedge_joined_values(found, settings) -%}
aggregate(
    _rest,
    struct(
        _position, _array_index, _fragment,
        {{ afterimage._listed(found.data | map(attribute='raw_name') | list) }}
    ),
    (_whole, _next) -> struct(
        _next._position as _position,
        _next._array_index as _array_index,
        _next._fragment as _fragment
        {%- for column in found.data %},
        {%- set name = afterimage._quoted(column.raw_name) %}
        {%- set place = settings.first_user_field + found.mask.index(column.name) %}
        case
            when _whole._position >= {{ place }} then _whole.{{ name }}
            {%- if column.is_array %}
            when _whole._position = {{ place - 1 }}
                then
                    {{ afterimage._openedge_joined_array(name) | indent(20) }}
            {%- elif afterimage._normal_type(column.raw.data_type) in ['string', 'binary'] %}
            when _whole._position = {{ place - 1 }} and _whole._fragment = 1
                then concat(_whole.{{ name }}, _next.{{ name }})
            {%- endif %}
            else _next.{{ name }}
        end as {{ name }}
        {%- endfor %}
    )
)
{%- endmacro %}


{# An array of which the records before hold `_array_index` whole elements, and perhaps a part of the next one. #}
{% macro _openedge_joined_array(name) -%}
transform(
    sequence(1, greatest(size(_whole.{{ name }}), size(_next.{{ name }}))),
    _number -> case
        when _number <= _whole._array_index then try_element_at(_whole.{{ name }}, _number)
        when _number = _whole._array_index + 1 and _whole._fragment = 1
            then concat(
                coalesce(try_element_at(_whole.{{ name }}, _number), ''),
                coalesce(try_element_at(_next.{{ name }}, _number), '')
            )
        else try_element_at(_next.{{ name }}, _number)
    end
)
{%- endmacro %}


{#
    known_columns of updates and before images: what is NULL and was not changed is unknown, as an update may leave it
    out. Without a field map nothing is said to be changed. The key identifies the row, and is always there.
#}
{% macro _openedge_known_columns(found, settings) -%}
    {%- set unknown = [] -%}
    {%- for column in found.data if column.name not in settings.key -%}
        {%- do unknown.append({
            'name': column.name,
            'condition': "(" ~ afterimage._quoted(column.raw_name) ~ " is null and not coalesce(array_contains(_changed_columns, "
            ~ afterimage._text(column.name) ~ "), false))",
        }) -%}
    {%- endfor -%}
{{ afterimage._known_columns("_change_oper in ('U', 'B')", found.data + found.added, unknown) }}
{%- endmacro %}


{# Which rows an operation on a partition or a tenant ends: those with its number in the column that a setting names. #}
{% macro _openedge_truncate_scope(settings) -%}
    {%- if not settings.partition_column and not settings.tenant_column -%}
        {{ return('cast(null as map<string, string>)') }}
    {%- endif -%}
case
    {%- if settings.partition_column %}
    when _operation in (6, 7, 8, 11)
        then map({{ afterimage._text(settings.partition_column) }}, cast(_partition_id as string))
    {%- endif %}
    {%- if settings.tenant_column %}
    when _operation in (9, 10)
        then map({{ afterimage._text(settings.tenant_column) }}, cast(_tenant_id as string))
    {%- endif %}
end
{%- endmacro %}


{# Why a record is not accepted, as far as it shows by itself. A half that waits is no record yet. #}
{% macro _openedge_reject_reason(found, tracked, settings, mask, has_halves) -%}
{%- set reasons -%}
case
    when _sequence is null then 'null_change_seq'
    when _sequence <= 0 then 'malformed_change_seq'
    when _change_oper is null then 'unknown_operation'
    -- a later format of the change table's records, which may hold values elsewhere
    when trim(_record_version) not in ('', '0', '1') then concat('unknown_version:', trim(_record_version))
    {%- if found.splits and settings.extract == 'sql' %}
    -- SQL joins split records: an extract that holds them was made otherwise
    when _is_split {{ 'and (_is_half or _is_unsupported) ' if found.splits == 'joined' -}}
        then 'split_record (set extract: abl)'
    {%- endif %}
    {%- if has_halves %}
    when _is_half then 'incomplete_record'
    {%- endif %}
    {%- if settings.extract == 'abl' %}
    when _is_unsupported then 'unsupported_record'
    {%- endif %}
    when
        {{ afterimage._openedge_has_no_scope((6, 7, 8, 11), settings.partition_column, '_partition_id') }}
        or {{ afterimage._openedge_has_no_scope((9, 10), settings.tenant_column, '_tenant_id') }}
        then 'unsupported_record'
    {%- if tracked.is_uncastable_time_stamp %}
    when
        {{ tracked.is_uncastable_time_stamp }}
        then {{ afterimage._text('uncastable_value:' ~ tracked.time_stamp.name) }}
    {%- endif %}
    {{- afterimage._when_uncastable(found.data) | indent }}
end
{%- endset -%}
{%- if mask -%}
{%- set reasons -%}
coalesce(
    {{ reasons | indent }},
    if(
        _change_oper in ('U', 'B'),
        {{ afterimage.change_mask_error('_field_map', found.mask, 'lsb_first', 0, mask.mask_type, true, 256) | indent(8) }},
        null
    )
)
{%- endset -%}
{%- endif -%}
{%- if has_halves -%}
if(
    _is_pending,
    null,
    {{ reasons | indent }}
)
{%- else -%}
{{ reasons }}
{%- endif -%}
{%- endmacro %}


{# Condition: an operation on a partition or a tenant of which the rows cannot be told. #}
{% macro _openedge_has_no_scope(operations, column, number) %}
    {%- set is_such = '_operation in (' ~ operations | join(', ') ~ ')' -%}
    {{ return('(' ~ is_such ~ ' and ' ~ number ~ ' is null)' if column else is_such) }}
{% endmacro %}
