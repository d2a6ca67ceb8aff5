{#
    The changes of one table of a solidDB server in the change-event contract: its rows of the decoded log, one per
    record, nothing filtered. With `base` the rows of that landed table of the same source follow, as a full load.

    The source entry names the table as the server does: its name (or `identifier`) is searched for in the
    landed catalogue, which gives the columns and their types. Only a base table is landed as a table.

    A table is known by its id, whatever it is called: records from before a rename belong to it, and so do those of a
    table of the same name that was recreated: from there on it is the table, and the older one is not.
#}
{% macro stage_soliddb_table(source_name, table_name, log, base=none) %}
    {{- config(materialized='staging_view') -}}
    {%- set relation = source(source_name, table_name) -%}
    {%- set tables = source(source_name, 'sys_tables') -%}
    {%- set columns = source(source_name, 'sys_columns') -%}
    {%- set base_relation = source(source_name, base) if base else none -%}
    {%- set settings = afterimage._settings(source_name, table_name) -%}
    {%- if not execute -%}
        {#- while dbt parses, neither tables nor settings are known #}
        {{- return('select * from ' ~ log) -}}
    {%- endif -%}
    {%- set macro_name = 'stage_soliddb_table' -%}
    {%- set table = source_name ~ '.' ~ table_name -%}
    {%- do afterimage._check_base(macro_name, table, base, settings) -%}
    {%- set ids = afterimage._soliddb_relation_ids(macro_name, table, relation.identifier, tables, settings) -%}
    {%- set takeovers = afterimage._soliddb_takeovers(macro_name, table, relation.identifier, ids, log) -%}
    {%- set data = afterimage._soliddb_columns(macro_name, table, ids, columns, settings) -%}
    {%- set names = data | map(attribute='name') | list -%}
    {%- do afterimage._check_data_columns(macro_name, table, names, settings, afterimage._soliddb_log_columns()) -%}
    {%- set skipped = {
        'skip_all': ["_record_id in (1, 3, 4, 5)", "_ddl_code = 73"],
        'skip_deletes': ["_record_id = 4", "_ddl_code = 73"],
        'keep': [],
    }[settings.capture_off] -%}
with

source as (
    select
        {%- for name in afterimage._soliddb_log_columns() %}
        {{ name[1:] }} as {{ name }},
        {%- endfor %}
        {%- for column in data %}
        element_at(image, {{ afterimage._text(column.catalogue_name) }}) as {{ afterimage._quoted(column.name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    from {{ log }}
    where
        relation_id in ({{ ids | join(', ') }})
        and record_id in (1, 3, 4, 5, 13)
),

decoded as (
    select
        _change_seq as change_seq,
        case
            {%- for takeover in takeovers %}
            -- the older table has another name from here on, or was dropped
            {%- if takeover.closes %}
            when _change_seq = {{ afterimage._text(takeover.at) }} then 'T'
            {%- endif %}
            when
                _relation_id in ({{ takeover.older | join(', ') }})
                and _change_seq > {{ afterimage._text(takeover.at) }}
                then 'N'
            {%- endfor %}
            {%- if skipped %}
            -- a transaction that the source says should not be propagated
            when
                _is_capture_off
                and ({{ skipped | join(' or ') }})
                then 'N'
            {%- endif %}
            -- without its values a record has no key to ask for
            when
                _reject_reason is not null
                and _image is null
                and _record_id <> 13
                then cast(null as string)
            when _record_id = 1 then 'I'
            when _record_id = 3 then 'U'
            when _record_id = 4 then 'D'
            when _record_id = 5 then 'B'
            -- a drop closes the rows as a truncate does
            when _ddl_code in (17, 73) then 'T'
            when _ddl_code is not null then 'N'
        end as change_oper,
        _changed_at as changed_at,
        cast(null as timestamp) as source_timestamp,
        cast(_transaction_id as string) as transaction_id,
        _transaction_event as transaction_event,
        cast(null as array<string>) as declared_changed_columns,
        -- before an ALTER a record lacks the columns that it adds
        case
            when
                {%- for column in data %}
                {{ 'or ' if not loop.first }}not map_contains_key(_image, {{ afterimage._text(column.catalogue_name) }})
                {%- endfor %}
                then array_compact(
                    array(
                        {%- for column in data %}
                        if(
                            map_contains_key(_image, {{ afterimage._text(column.catalogue_name) }}),
                            {{ afterimage._text(column.name) }},
                            null
                        ){{ ',' if not loop.last }}
                        {%- endfor %}
                    )
                )
        end as known_columns,
        cast(null as map<string, string>) as truncate_scope,
        cast(null as string) as load_id,
        cast(null as string) as arrival,
        {%- if data | selectattr('is_cast') | list %}
        coalesce(
            _reject_reason,
            case
                {{- afterimage._when_uncastable(data) | indent(16) }}
            end
        ) as reject_reason,
        {%- else %}
        _reject_reason as reject_reason,
        {%- endif %}
        _record_hash as record_hash,
        to_json(
            struct(
                _log_address as logaddr,
                _record_id as recid,
                _transaction_id as trxid,
                _statement_id as stmttrxid,
                _relation_id as relid,
                _flags as flags,
                _image as decoded,
                _undecoded_data as undecoded_data,
                _reject_detail as reject_detail
            ),
            map('ignoreNullFields', 'false')
        ) as raw_record
        {%- for column in data %},
        {{ afterimage._cast_column(column) }}{{ ' as ' ~ afterimage._quoted(column.name) if column.is_cast }}
        {%- endfor %}
    from source
),

{{ afterimage._with_base_rows(macro_name, source_name, base, base_relation, settings, data) }}
{%- endmacro %}
