{# Parts of stage_qlik_messages, and what the model that decodes messages is told of their tables. #}

{# Columns of the decoded messages that a staging view reads, under names that no data column has. #}
{% macro _qlik_message_columns() %}
    {{ return([
        '_kind', '_topic', '_partition', '_offset', '_produced_at', '_operation', '_change_seq', '_source_timestamp',
        '_stream_position', '_transaction_id', '_transaction_event', '_is_last_event', '_change_mask', '_column_mask',
        '_mask_columns', '_has_before', '_load_id', '_loaded_at', '_arrival', '_reject_reason', '_reject_detail',
        '_raw_value', '_record_hash',
    ]) }}
{% endmacro %}


{#
    The tables of a source of messages, as the model that decodes them must know them:
    [{name, message_table, table_schema, key}]. Empty for the sources of other systems.
#}
{% macro _message_tables(node) %}
    {%- set tables = [] -%}
    {%- if afterimage._settings_of(node).system == 'qlik_messages' -%}
        {%- for entry in graph.sources.values() if entry.source_name == node.sources[0][0] and entry.name != node.sources[0][1] -%}
            {%- set settings = adapter.afterimage.settings(entry) -%}
            {%- if settings.system == 'qlik_messages' -%}
                {%- do tables.append({
                    'name': entry.name,
                    'message_table': settings.message_table or entry.identifier,
                    'table_schema': afterimage._schema_in_messages(settings),
                    'key': settings.key,
                }) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(tables) }}
{% endmacro %}


{# The schema by which decoded messages name the table; none if only metadata messages do. #}
{% macro _schema_in_messages(settings) %}
    {{ return(settings.table_schema if settings.table_from in ('schema_id', 'message') else none) }}
{% endmacro %}


{# Names of the tables of all sources of messages that a model decodes: those that `complete_load` may name. #}
{% macro _all_message_tables() %}
    {%- set names = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'staging_log' -%}
        {%- do names.extend(afterimage._message_tables(node) | map(attribute='name')) -%}
    {%- endfor -%}
    {{ return(names) }}
{% endmacro %}


{#
    The data columns as _typed_column has them: those of the newest version in metadata messages, then those that
    only older ones have; without metadata the declared ones. A declared type wins. `is_lob`: a large object, by its type in
    a metadata message or by the setting.

    Arguments: the macro's and the table's name for errors, the table's name at the source, the decoded messages, settings.
#}
{% macro _qlik_message_data(macro, table, source_table, messages, settings) %}
    {%- set declared = afterimage._declared_columns(settings) -%}
    {%- set found = [] -%}
    {%- set lobs = [] -%}
    {%- if settings.schemas_from == 'metadata' and afterimage._raw_columns(messages) -%}
        {%- set of_schema = " and table_schema = " ~ afterimage._text(settings.table_schema) if settings.table_schema else "" -%}
        {%- set rows = run_query(
            "select name, is_lob, version, schemas, newest.* from (select name, max_by(struct(data_type, numeric_precision,"
            ~ " numeric_scale, ordinal, key_position), table_version) as newest, max(table_version) as version,"
            ~ " bool_or(data_type in ('BLOB', 'CLOB', 'NCLOB')) as is_lob, array_join(collect_set(table_schema), ', ')"
            ~ " as schemas from (select table_version, table_schema, inline(transform("
            ~ "columns, c -> named_struct('name', c.name, 'data_type', c.type, 'numeric_precision', c.precision,"
            ~ " 'numeric_scale', c.scale, 'ordinal', c.ordinal, 'key_position', c.primarykeyposition))) from " ~ messages
            ~ " where kind = 'metadata' and table_name = " ~ afterimage._text(source_table) ~ of_schema
            ~ ") as versions group by name) as newest_columns order by version desc, newest.ordinal"
        ).rows -%}
        {%- do afterimage._check_schema_of_source(table, source_table, rows, settings) -%}
        {%- do afterimage._check_key_of_source(table, rows, settings) -%}
        {%- for row in rows -%}
            {%- set own = declared.get(row['name'] | lower, {}) -%}
            {%- set name = own.get('name', row['name']) -%}
            {%- set column = afterimage._typed_column(
                name, {'name': name, 'data_type': 'string'}, own.get('data_type') or afterimage._qlik_spark_type(row)
            ) -%}
            {%- do column.update({'message_name': row['name'], 'ordinal': row['ordinal'] | int}) -%}
            {%- if row['is_lob'] -%}
                {%- do lobs.append(name) -%}
            {%- endif -%}
            {%- do found.append(column) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not found -%}
        {%- for own in settings.declared_columns -%}
            {%- set column = afterimage._typed_column(own.name, {'name': own.name, 'data_type': 'string'}, own.data_type or 'string') -%}
            {%- do column.update({'message_name': own.name, 'ordinal': loop.index}) -%}
            {%- do found.append(column) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not found -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: source table " ~ table ~ " declares no columns, and no metadata message has those of "
            ~ source_table ~ ". Fix: declare the `columns` with their data_type, or set `schemas_from: metadata` and land the"
            ~ " metadata messages."
        ) }}
    {%- endif -%}
    {%- do lobs.extend(afterimage._columns_of_setting(macro, table, 'lob_columns', settings.lob_columns, found)) -%}
    {%- for column in found -%}
        {%- do column.update({'is_lob': column.name in lobs}) -%}
    {%- endfor -%}
    {{ return(found) }}
{% endmacro %}


{#
    Warns if metadata messages have the table in several schemas, and the settings do not say which: two tables would be one,
    unless it is one table whose schema was renamed.
#}
{% macro _check_schema_of_source(table, source_table, rows, settings) %}
    {%- set schemas = [] -%}
    {%- for row in rows if row['schemas'] -%}
        {%- do schemas.extend(row['schemas'].split(', ')) -%}
    {%- endfor -%}
    {%- if not settings.table_schema and schemas | unique | list | length > 1 -%}
        {%- do exceptions.warn(
            "Source table " ~ table ~ ": metadata messages have a table " ~ source_table ~ " in the schemas "
            ~ schemas | unique | sort | join(', ') ~ ", whose columns count as those of one table. Fix: set `table_schema` to one"
            ~ " of them, unless the schema was renamed."
        ) -%}
    {%- endif -%}
{% endmacro %}


{#
    Stops, or warns, if the newest metadata message of a table has another primary key than the setting `key`: rows of
    the source would share a history, or a row would have several.
#}
{% macro _check_key_of_source(table, rows, settings) %}
    {%- set of_source = [] -%}
    {%- for row in rows | selectattr('key_position') | sort(attribute='key_position') if row['version'] == rows[0]['version'] -%}
        {%- do of_source.append(row['name']) -%}
    {%- endfor -%}
    {%- set is_same = settings.key | map('lower') | sort | list == of_source | map('lower') | sort | list -%}
    {%- if settings.key and of_source and not is_same and settings.on_key_mismatch != 'ignore' -%}
        {%- set text = "Source table " ~ table ~ ": `key` is [" ~ settings.key | join(', ') ~ "], and the primary key in its newest"
            ~ " metadata message is [" ~ of_source | join(', ') ~ "]." -%}
        {%- if settings.on_key_mismatch == 'warn' -%}
            {%- do exceptions.warn(text) -%}
        {%- else -%}
            {{ exceptions.raise_compiler_error(
                text ~ " Fix: set `key: [" ~ of_source | join(', ') ~ "]`; or, where another key is meant, set"
                ~ " `on_key_mismatch: warn` or `on_key_mismatch: ignore` on the table."
            ) }}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


{#
    Condition: the value of a column in `_image` is real. It is not where the message lacks the column; and a NULL is none
    where the column's bit of the column mask is clear, and where the column is a large object whose bit of the change mask
    is clear in an update: Qlik sets no bit for large objects, so the NULL may mean a value that did not change.
#}
{% macro _is_known_in_message(column) -%}
map_contains_key(_image, {{ afterimage._text(column.message_name) }})
and (
    {{ afterimage._quoted(column.name) }} is not null
    {%- if column.is_lob %}
    or coalesce(array_contains(_sent, {{ afterimage._text(column.message_name) }}), true)
    and (
        _letter not in ('U', 'B')
        or coalesce(array_contains(_marked, {{ afterimage._text(column.message_name) }}), false)
    )
    {%- else %}
    or coalesce(array_contains(_sent, {{ afterimage._text(column.message_name) }}), true)
    {%- endif %}
)
{%- endmacro %}


{#
    The Spark type that holds every value of a column of a metadata message. A time of day has no type of its own in the
    table formats, and a number of more than 38 digits none in Spark: both stay text.
#}
{% macro _qlik_spark_type(column) %}
    {%- set type = (column['data_type'] or '') | upper -%}
    {%- if type == 'NUMERIC' -%}
        {%- set precision = (column['numeric_precision'] or 0) | int -%}
        {{ return('decimal(' ~ precision ~ ',' ~ (column['numeric_scale'] or 0) | int ~ ')' if 0 < precision <= 38 else 'string') }}
    {%- endif -%}
    {{ return({
        'BOOLEAN': 'boolean', 'INT1': 'smallint', 'UINT1': 'smallint', 'INT2': 'smallint', 'UINT2': 'int', 'INT4': 'int',
        'UINT4': 'bigint', 'INT8': 'bigint', 'UINT8': 'decimal(20,0)', 'REAL4': 'float', 'REAL8': 'double',
        'DATE': 'date', 'DATETIME': 'timestamp', 'TIMESTAMP': 'timestamp', 'BYTES': 'binary', 'BLOB': 'binary',
    }.get(type, 'string')) }}
{% endmacro %}


{#
    SQL: the columns of a message's masks by ordinal, array<string> in the messages' spelling, NULL for an ordinal that no
    column has. The setting `mask_columns` goes before; a name in it that the table does not have keeps its place. Else
    they are those of the version that the message was written with. If the message does not name it, they are those of
    the newest version, with the columns that only older ones have where their ordinals are free; without metadata messages
    the declared ones, in their order.
#}
{% macro _message_columns_by_ordinal(macro, table, data, settings) %}
    {%- set spelt = {} -%}
    {%- for column in data -%}
        {%- do spelt.update({column.name: column.message_name}) -%}
    {%- endfor -%}
    {%- if settings.mask_columns -%}
        {%- set lobs = data | selectattr('is_lob') | map(attribute='name') | list -%}
        {%- set listed = [] -%}
        {%- for name in afterimage._listed_mask_columns(macro, table, spelt | list, lobs, settings) -%}
            {%- do listed.append(spelt.get(name)) -%}
        {%- endfor -%}
        {{ return(afterimage._array_of(listed)) }}
    {%- endif -%}
    {%- set by_ordinal = {} -%}
    {%- for column in data -%}
        {%- do by_ordinal.setdefault(column.ordinal, column.message_name) -%}
    {%- endfor -%}
    {%- set listed = [] -%}
    {%- for ordinal in range(1, (by_ordinal | max) + 1) -%}
        {%- do listed.append(by_ordinal.get(ordinal)) -%}
    {%- endfor -%}
    {{ return('coalesce(mask_columns, ' ~ afterimage._array_of(listed) ~ ')') }}
{% endmacro %}


{#
    The columns whose bit of a mask is set: array<string>. The mask is hex text whose last digit has the bits of the first
    four ordinals; only data columns have bits.

    By digit and not by word, as change_mask_columns does it: the columns differ from message to message.
#}
{% macro _message_mask_columns(mask) -%}
filter(
    _mask_columns,
    (name, place) -> name is not null
    and getbit(
        coalesce(
            cast(conv(substr({{ mask }}, length({{ mask }}) - place div 4, 1), 16, 10) as int),
            0
        ),
        place % 4
    ) = 1
    and place div 4 < length({{ mask }})
)
{%- endmacro %}


{# Texts as an SQL array; none becomes NULL. #}
{% macro _array_of(texts) %}
    {%- set literals = [] -%}
    {%- for text in texts -%}
        {%- do literals.append('null' if text is none else afterimage._text(text)) -%}
    {%- endfor -%}
    {{- return('array(' ~ literals | join(', ') ~ ')') -}}
{% endmacro %}


{# Names of columns as messages spell them, as their declarations spell them. #}
{% macro _as_declared(names, data) %}
    {%- set pairs = [] -%}
    {%- for column in data if column.message_name != column.name -%}
        {%- do pairs.append(afterimage._text(column.message_name) ~ ', ' ~ afterimage._text(column.name)) -%}
    {%- endfor -%}
    {%- if not pairs -%}
        {{ return(names) }}
    {%- endif -%}
    {{- return(
        "transform(" ~ names ~ ", name -> coalesce(element_at(map(" ~ pairs | join(', ') ~ "), name), name))"
    ) -}}
{% endmacro %}
