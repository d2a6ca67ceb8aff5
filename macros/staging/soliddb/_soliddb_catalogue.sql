{# What the landed catalogue of a solidDB server says of a table: its ids, its columns, their types. #}

{# Columns of the decoded log that a staging view reads, under names that no data column has. #}
{% macro _soliddb_log_columns() %}
    {{ return([
        '_change_seq', '_log_address', '_record_id', '_relation_id', '_transaction_id', '_statement_id',
        '_transaction_event', '_flags', '_is_capture_off', '_changed_at', '_image', '_ddl_code',
        '_reject_reason', '_reject_detail', '_undecoded_data', '_record_hash',
    ]) }}
{% endmacro %}


{#
    Ids of the table with a name: what the newest snapshot that has an id calls it, in the order in which snapshots first
    have them under that name. [-1] before a catalogue is landed, so that the project compiles without tables.
    An id that had the name before one of these, and has another one now, is the older table until that one took over.
#}
{% macro _soliddb_relation_ids(macro, table, name, tables, settings) %}
    {%- if not afterimage._landed_columns(macro, tables) -%}
        {{ return([-1]) }}
    {%- endif -%}
    {%- set found = run_query(
        "select id, max_by(upper(table_name), " ~ afterimage._snapshot_place() ~ ") as newest_name, max_by(upper(table_schema), "
        ~ afterimage._snapshot_place() ~ ") as newest_schema, min(" ~ afterimage._snapshot_place() ~ ") filter (where upper(table_name) = upper("
        ~ afterimage._text(name) ~ ")) as first_place, row_number() over (order by max(" ~ afterimage._snapshot_place() ~ ") filter (where"
        ~ " upper(table_name) = upper(" ~ afterimage._text(name) ~ ")), id) as last_number from " ~ tables
        ~ " group by id having first_place is not null order by first_place, id"
    ) -%}
    {%- set ids = [] -%}
    {%- set schemas = [] -%}
    {%- set renamed = [] -%}
    {%- set former = [] -%}
    {%- set order = [] -%}
    {%- for row in found.rows if
        (not settings.table_schema or row['newest_schema'] == settings.table_schema | upper)
        and (not settings.relation_id or row['id'] | int == settings.relation_id)
    -%}
        {%- if row['newest_name'] != name | upper -%}
            {%- do renamed.append(row['newest_name']) -%}
            {%- do former.append(row['id'] | int) -%}
        {%- else -%}
            {%- do ids.extend(former) -%}
            {%- do former.clear() -%}
            {%- do ids.append(row['id'] | int) -%}
            {%- do schemas.append(row['newest_schema'] | string) -%}
            {%- do order.append(row['last_number'] | int) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not ids -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: the landed SYS_TABLES has no table " ~ name
            ~ (" with the id " ~ settings.relation_id if settings.relation_id) ~ ", which source table " ~ table ~ " names."
            ~ (" It is called " ~ renamed | join(', ') ~ " now." if renamed)
            ~ " Fix: set the `identifier` of the source table to the table's present name, or land the catalogue again."
        ) }}
    {%- elif order != order | sort -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: of the ids " ~ ids | join(', ') ~ " that the table " ~ name ~ " has had, which source table " ~ table
            ~ " names, an older one has the name again: it was renamed back. Fix: set `relation_id` of the source table to the"
            ~ " id that it has now, and record its changes again: --vars '{rebuild_changes: true}'."
        ) }}
    {%- elif schemas | unique | list | length > 1 -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: several schemas have a table " ~ name ~ ", which source table " ~ table ~ " names: "
            ~ schemas | unique | join(', ') ~ ". Fix: say which one with the setting `table_schema`."
        ) }}
    {%- endif -%}
    {{ return(ids) }}
{% endmacro %}


{#
    Where a recreated table took over the name, according to the decoded log: [{at, older, closes}], with the
    address of its CREATE, the ids that are no longer the table from there on, and whether their rows are still open
    then, which they are if the older table was renamed and not dropped.

    Stops where the ids cannot be told apart by such a place, for instance because a table with another name was filled
    and then put in the place of this one.
#}
{% macro _soliddb_takeovers(macro, table, name, ids, log) %}
    {%- if ids | length == 1 or not afterimage._raw_columns(log) -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set listed = ids | join(', ') -%}
    {%- set created = {} -%}
    {%- set dropped = {} -%}
    {%- for row in run_query(
        "select relation_id, max(log_address) filter (where ddl_code = 45 and substring_index(upper(translate(ddl_name, '\"',"
        ~ " '')), '.', -1) = upper(" ~ afterimage._text(name) ~ ")) as created_at, max(log_address) filter (where ddl_code = 17) as"
        ~ " dropped_at from " ~ log ~ " where is_ddl and reject_reason is null and relation_id in (" ~ listed ~ ")"
        ~ " group by relation_id"
    ).rows -%}
        {%- do created.update({row['relation_id'] | int: row['created_at']}) -%}
        {%- do dropped.update({row['relation_id'] | int: row['dropped_at']}) -%}
    {%- endfor -%}
    {%- set takeovers = [] -%}
    {%- set untold = [] -%}
    {%- for id in ids[1:] -%}
        {%- set at = created.get(id) -%}
        {%- set dropped_at = dropped.get(ids[loop.index0]) -%}
        {%- if at -%}
            {%- do takeovers.append(
                {'at': at, 'older': ids[:loop.index], 'closes': not dropped_at or dropped_at > at}
            ) -%}
        {%- else -%}
            {%- do untold.append(loop.index) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if untold -%}
        {%- set first = {} -%}
        {%- set last = {} -%}
        {%- for row in run_query(
            "select relation_id, min(log_address) as first_address, max(log_address) as last_address from " ~ log
            ~ " where relation_id in (" ~ listed ~ ") group by relation_id"
        ).rows -%}
            {%- do first.update({row['relation_id'] | int: row['first_address']}) -%}
            {%- do last.update({row['relation_id'] | int: row['last_address']}) -%}
        {%- endfor -%}
        {%- for place in untold if ids[place] in first -%}
            {%- for older in ids[:place] if older in last and last[older] > first[ids[place]] -%}
                {{ exceptions.raise_compiler_error(
                    "`" ~ macro ~ "`: the landed SYS_TABLES has the table " ~ name ~ ", which source table " ~ table
                    ~ " names, with the ids " ~ listed ~ ", and the log does not show where " ~ ids[place] ~ " took over"
                    ~ " the name: it has records of " ~ older ~ " after the first one of " ~ ids[place] ~ ". Fix: set"
                    ~ " `relation_id` of the source table to one id; give the other a source table of its own, with"
                    ~ " `identifier: " ~ name ~ "`, its `relation_id`, and marts of its own."
                ) }}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(takeovers) }}
{% endmacro %}


{#
    The data columns as _typed_column has them, with `catalogue_name`: those of the newest snapshot in their order, then
    those that only older ones have. The type is the declared one, else it follows from the catalogue.
#}
{% macro _soliddb_columns(macro, table, ids, columns, settings) %}
    {%- set declared = afterimage._declared_columns(settings) -%}
    {%- set found = [] -%}
    {%- if afterimage._raw_columns(columns) -%}
        {%- for row in run_query(
            "select column_name, newest.* from (select column_name, max_by(struct(upper(trim(data_type)) as sql_type,"
            ~ " data_type_number, numeric_precision, numeric_scale, column_number), " ~ afterimage._snapshot_place() ~ ") as newest, max("
            ~ afterimage._snapshot_place() ~ ") as place from " ~ columns ~ " where rel_id in (" ~ ids | join(', ')
            ~ ") and attr_type = 0 group by column_name) as columns order by place desc, column_number"
        ).rows -%}
            {%- set own = declared.get(row['column_name'] | lower, {}) -%}
            {%- set column = afterimage._typed_column(
                own.get('name', row['column_name'] | lower),
                {'name': own.get('name', row['column_name'] | lower), 'data_type': 'string'},
                own.get('data_type') or afterimage._soliddb_spark_type(row),
            ) -%}
            {%- do column.update({'catalogue_name': row['column_name']}) -%}
            {%- do found.append(column) -%}
        {%- endfor -%}
    {%- else -%}
        {%- for name, own in declared.items() -%}
            {%- set column = afterimage._typed_column(own.name, {'name': own.name, 'data_type': 'string'}, own.data_type or 'string') -%}
            {%- do column.update({'catalogue_name': own.name | upper}) -%}
            {%- do found.append(column) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not found and not afterimage._raw_columns(columns) -%}
        {%- do afterimage._stop_for_missing(macro, columns) -%}
    {%- elif not found -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: the landed SYS_COLUMNS has no columns of source table " ~ table ~ " (REL_ID " ~ ids | join(', ')
            ~ "), and its entry declares none. Fix: land SYS_COLUMNS, or declare the `columns` with their data_type."
        ) }}
    {%- endif -%}
    {{ return(found) }}
{% endmacro %}


{#
    The Spark type that holds every value of a column. A time of day has no type of its own in the table formats, and a
    decimal of more than 38 digits none in Spark: both stay text.
#}
{% macro _soliddb_spark_type(column) %}
    {%- set number = column['data_type_number'] | int -%}
    {%- if number == 4 -%}
        {{ return({'DATE': 'date', 'TIME': 'string'}.get(column['sql_type'], 'timestamp')) }}
    {%- elif number == 5 -%}
        {%- set precision = column['numeric_precision'] -%}
        {%- if precision is none or precision | int > 38 -%}
            {{ return('string') }}
        {%- endif -%}
        {{ return('decimal(' ~ precision | int ~ ',' ~ (column['numeric_scale'] or 0) | int ~ ')') }}
    {%- endif -%}
    {{ return({1: 'int', 2: 'double', 3: 'double', 6: 'binary', 8: 'bigint'}.get(number, 'string')) }}
{% endmacro %}


{# Orders snapshots by their address; one without is older than all. Binary and hex text both compare correctly. #}
{% macro _snapshot_place() %}
    {{- return("struct(snapshot_logaddr is not null, snapshot_logaddr)") -}}
{% endmacro %}
