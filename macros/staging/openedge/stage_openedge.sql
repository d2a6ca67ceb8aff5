{#
    A change table `CDC_<table>` of Progress OpenEdge in the change-event contract: one row per change, and one for each
    operation of the tracking table that concerns the table. With `base` the rows of that table of the same source follow,
    as rows of a full load (change_oper L).

    A change is in two tables: its operation in `_Cdc-Change-Tracking`, for all tables of the database, and its
    values in the change table; `_Change-Sequence` joins them. An extract may hold one half of a change, at its edge. That
    half waits as `N` (no row change, so that the log leaves it alone) until a later extract brings the other one; when it
    lies further back than `look_back` it is rejected, as `incomplete_record`.
    Extracts overlap: equal rows count once. `_User-Misc` and `_Misc`, which consumers write to, make no difference.

    Arguments:
      source_name  name of the dbt source
      table_name   the change table in it; its settings count
      tracking     the extract of `_Cdc-Change-Tracking` in the same source; none where the change table's extract is
                   joined with it already
      base         the table with the full load, or none
#}
{% macro stage_openedge(source_name, table_name, tracking=none, base=none) %}
    {%- set macro_name = 'stage_openedge' -%}
    {%- set given = afterimage._staging_input(macro_name, source_name, table_name, base) -%}
    {%- set tracking_relation = source(source_name, tracking) if tracking else none -%}
    {%- set relation, base_relation = given.relation, given.base_relation -%}
    {%- set settings, table, raw_columns = given.settings, given.table, given.raw_columns -%}
    {%- if not raw_columns -%}
        {{- return('select * from ' ~ relation) -}}
    {%- endif -%}
    {%- if 'sequence' not in afterimage._openedge_own_columns(raw_columns) and not afterimage._raw_columns(relation) -%}
        {%- do afterimage._stop_for_missing(macro_name, relation) -%}
    {%- endif -%}
    {%- do afterimage._check_base(macro_name, table, base, settings) -%}
    {%- set found = afterimage._openedge_table(macro_name, table, raw_columns, settings) -%}
    {%- set tracked = afterimage._openedge_tracking(macro_name, source_name, tracking, tracking_relation, found, settings) -%}
    {%- do afterimage._check_openedge_sequences(tracked, tracking_relation or relation, settings) -%}
    {%- set names = found.data | map(attribute='name') | list -%}
    {%- do afterimage._check_data_columns(macro_name, table, names + found.added | map(attribute='name') | list, settings) -%}
    {%- set has_halves = tracking or found.splits == 'joined' -%}
    {%- set tracked_names = afterimage._openedge_tracked_columns(tracked) | reject('equalto', 'operation') | list -%}

    {#- the words of the field map are read many times: selected first, under names of their own #}
    {%- set mask = {
        'mask': 'tracking_rows.tracked.field_map' if tracking else 'captured._field_map',
        'data_columns': found.mask,
        'byte_order': 'lsb_first',
        'mask_type': tracked.field_map.type,
    } if tracked.field_map.is_stored and not tracked.has_list else none -%}
    {%- set parts = afterimage.change_mask_parts(**mask) if mask else {} -%}
with

{% if tracking -%}
tracking_rows as (
    {{ afterimage._openedge_tracking_rows(tracked, tracking_relation) | indent }}
),

{% endif -%}
captured as (
    {{ afterimage._openedge_captured_rows(found, tracked, relation) | indent }}
),

-- extracts overlap: of equal rows the first to be landed counts
distinct_rows as (
    select *
    from (
        select
            *,
            row_number() over (
                partition by _sequence, _operation, _hash order by _landed_at
            ) as _copy
        from captured
    ) as numbered
    where _copy = 1
),

{% if found.splits -%}
{{ afterimage._openedge_whole_rows(found, settings) }}

{% endif -%}
{%- set whole = 'whole_rows' if found.splits else 'distinct_rows' -%}
{% if has_halves -%}
edge as (
    select max(both_tables.place) - {{ settings.look_back }} as place
    from (
        select max({{ found.sequence }}) as place
        from {{ relation }}
        {%- if tracking %}
        union all
        select max({{ tracked.sequence }}) as place
        from {{ tracking_relation }}
        {{- tracked.where | indent(8) }}
        {%- endif %}
    ) as both_tables
),

{% endif -%}
records as (
    select
        {%- if tracking %}
        coalesce(captured._sequence, tracking_rows._sequence) as _sequence,
        coalesce(captured._operation, tracking_rows.tracked.operation) as _operation,
        {%- for name in tracked_names %}
        tracking_rows.tracked.{{ name }} as _{{ name }},
        {%- endfor %}
        if(
            tracking_rows.tracked is null
            or (captured._hash is null and tracking_rows.tracked.operation between 1 and 4),
            true,
            {{ 'coalesce(captured._is_half, false)' if found.splits == 'joined' else 'false' }}
        ) as _is_half,
        greatest(tracking_rows.landed_at, captured._landed_at) as _landed_at,
        xxhash64(captured._hash, tracking_rows.tracked.hash) as _hash,
        concat(
            '{"tracking":', coalesce(tracking_rows.tracked.raw_record, 'null'),
            ',"change":', coalesce(captured._raw_record, 'null'), '}'
        ) as _raw_record
        {%- else %}
        captured._sequence,
        captured._operation,
        {%- for name in tracked_names %}
        captured._{{ name }},
        {%- endfor %}
        {{ 'captured._is_half' if found.splits == 'joined' else 'false' }} as _is_half,
        captured._landed_at,
        captured._hash,
        captured._raw_record
        {%- endif %}
        {%- if found.splits %},
        coalesce(captured._is_split, false) as _is_split,
        coalesce(captured._is_unsupported, false) as _is_unsupported
        {%- endif %}
        {%- for name, expression in parts.items() %},
        {{ expression }} as {{ name }}
        {%- endfor %}
        {%- for column in found.data %},
        captured.{{ afterimage._quoted(column.raw_name) }}
        {%- endfor %}
    from {{ whole }} as captured
    {%- if tracking %}
    full outer join tracking_rows on captured._sequence = tracking_rows._sequence
    {%- endif %}
),

named as (
    select
        *,
        {{ afterimage.openedge_change_operation('_operation') | indent(8) }} as _change_oper,
        {%- if tracked.has_list %}
        {{ afterimage.openedge_changed_columns('_changed_fields', names) | indent(8) }} as _changed_columns
        {%- elif mask %}
        {{ afterimage.openedge_field_map_columns('_field_map', found.mask, mask.mask_type, has_parts=true) | indent(8) }} as _changed_columns
        {%- else %}
        cast(null as array<string>) as _changed_columns
        {%- endif %}
        {%- if has_halves %},
        _is_half and _sequence > (select edge.place from edge) as _is_pending
        {%- endif %}
    from records
),

decoded as (
    select
        {{ afterimage._openedge_change_seq('_sequence') }} as change_seq,
        {%- set parts_of_changes = (['_is_half'] if has_halves else []) + (['_is_unsupported'] if found.splits else []) %}
        {%- if parts_of_changes %}
        -- of a part that is given up too little is known to say more
        if(
            {{ parts_of_changes | join(' or ') }},
            {{ "if(_is_pending, 'N', null)" if has_halves else 'null' }},
            _change_oper
        ) as change_oper,
        {%- else %}
        _change_oper as change_oper,
        {%- endif %}
        {{ tracked.cast_time_stamp }} as changed_at,
        {{ tracked.cast_time_stamp }} as source_timestamp,
        _tran_id as transaction_id,
        cast(null as bigint) as transaction_event,
        _user_name as source_user,
        if(_change_oper = 'U', _changed_columns, null) as declared_changed_columns,
        {%- if settings.sparse_updates %}
        {{ afterimage._openedge_known_columns(found, settings) | indent(8) }} as known_columns,
        {%- else %}
        cast(null as array<string>) as known_columns,
        {%- endif %}
        {{ afterimage._openedge_truncate_scope(settings) | indent(8) }} as truncate_scope,
        cast(null as string) as load_id,
        {{ '_landed_at' if found.has_landed_at or tracked.has_landed_at else 'cast(null as string)' }} as arrival,
        {{ afterimage._openedge_reject_reason(found, tracked, settings, mask, has_halves) | indent(8) }} as reject_reason,
        _hash as record_hash,
        _raw_record as raw_record
        {%- for column in found.data %},
        {{ afterimage._cast_column(column) }}{{ ' as ' ~ afterimage._quoted(column.name) if column.is_cast or column.raw_name != column.name }}
        {%- endfor %}
        {%- for column in found.added %},
        if(_change_oper in ('T', 'N'), null, {{ column.sql }}) as {{ afterimage._quoted(column.name) }}
        {%- endfor %}
    from named
),

{{ afterimage._with_base_rows(macro_name, source_name, base, base_relation, settings, found.data + found.added) }}
{%- endmacro %}
