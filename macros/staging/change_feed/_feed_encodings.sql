{#
    The text of a value of a JSON document: in the encoding that the schema of its message gives the column, where there is one,
    else in the column's own.
#}
{% macro _decoded_value(value, column, settings) %}
    {%- set own = afterimage._decoded_text(value, column) -%}
    {%- set encodings = adapter.afterimage.schema_encodings_of(column.data_type.split('(')[0]) -%}
    {%- if not encodings or not (settings.json_payload or settings.schemas) -%}
        {{ return(own) }}
    {%- endif -%}
    {%- set cases = [] -%}
    {%- for encoding in encodings | list + (['text'] if settings.schemas else []) -%}
        {%- do cases.append(
            "when " ~ afterimage._text(encoding) ~ " then " ~ afterimage._decoded_text(value, dict(column, encoding=encoding))
        ) -%}
    {%- endfor -%}
    {{ return(
        "case element_at(_schema_encodings, " ~ afterimage._text(column.name | lower) ~ ") " ~ cases | join(' ') ~ " else " ~ own
        ~ " end"
    ) }}
{% endmacro %}


{#
    A message of a schema registry as columns of a generator: `_schema_id`, NULL where the message has none, and `_message_text`,
    the message as JSON; NULL where its schema is not known. Both forms begin with a zero byte and four of the id.
    Source: Confluent documentation, "Wire format".

    Arguments:
      schemas  as adapter.afterimage.registered_schemas gives them
#}
{% macro _registered_message(schemas) -%}
inline(transform(
    array(if(hex(substr(value, 1, 1)) = '00', cast(conv(hex(substr(value, 2, 4)), 16, 10) as bigint), null)),
    schema_id -> struct(
        schema_id as _schema_id,
        case
            when schema_id is null then cast(value as string)
            {%- for schema in schemas %}
            when schema_id = {{ schema.id }}
                {%- if schema.is_avro %}
                then to_json(
                    from_avro(substr(value, 6), {{ afterimage._text(schema.text) }}, map('mode', 'PERMISSIVE')),
                    map(
                        'ignoreNullFields', 'false',
                        'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',
                        'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'
                    )
                )
                {%- else %}
                then cast(substr(value, 6) as string)
                {%- endif %}
            {%- endfor %}
        end as _message_text
    )
)) as (_schema_id, _message_text)
{%- endmacro %}


{# SQL: a map from columns, in lower case, to the encodings that the schema `_schema_id` gives them. #}
{% macro _registered_encodings(schemas) -%}
{%- if not schemas | selectattr('encodings') | list -%}
    {{ return('cast(null as map<string, string>)') }}
{%- endif -%}
case _schema_id
    {%- for schema in schemas if schema.encodings %}
    {%- set pairs = [] -%}
    {%- for name, encoding in schema.encodings.items() -%}
        {%- do pairs.append(afterimage._text(name) ~ ", " ~ afterimage._text(encoding)) -%}
    {%- endfor %}
    when {{ schema.id }} then map({{ pairs | join(', ') }})
    {%- endfor %}
    else cast(null as map<string, string>)
end
{%- endmacro %}


{#
    SQL: a map from data columns, in lower case, to the encodings that a schema of Kafka Connect gives them, by the names of
    their types; NULL without a schema. The columns are fields of the schema, or of the struct `after` in it.
#}
{% macro _schema_encodings(fields, data) -%}
    {%- set names, pairs = [], [] -%}
    {%- for column in data -%}
        {%- for encoding, types in adapter.afterimage.schema_encodings_of(column.data_type.split('(')[0]).items() -%}
            {%- do names.append(afterimage._text(column.name | lower)) -%}
            {%- for type in types -%}
                {%- do pairs.append(afterimage._text(type) ~ ", " ~ afterimage._text(encoding)) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not names -%}
cast(null as map<string, string>)
    {%- else -%}
    {%- set pairs = pairs | unique | list -%}
map_from_entries(transform(
    filter(
        concat(
            transform({{ fields }}, field -> struct(field.field, field.name)),
            flatten(transform(filter({{ fields }}, field -> field.field = 'after'), field -> field.fields))
        ),
        field -> lower(field.field) in ({{ names | unique | join(', ') }})
        and map_contains_key(map({{ pairs | join(', ') }}), field.name)
    ),
    field -> struct(lower(field.field), element_at(map({{ pairs | join(', ') }}), field.name))
))
    {%- endif -%}
{%- endmacro %}


{#
    The text of a value that a JSON document writes in an encoding, as a cast to the column's type reads it; a text that no
    cast takes where it is not of that encoding. ENCODINGS (settings/change_feed.py) has the encodings and their types.
    Source: Debezium documentation, "Data type mappings" of the PostgreSQL connector.

    Arguments:
      value   SQL: the text in the document, NULL for a null
      column  as _feed_data gives it
#}
{% macro _decoded_text(value, column) %}
    {%- set encoding = column.encoding -%}
    {%- set number = "try_cast(" ~ value ~ " as bigint)" -%}
    {%- set times = {
        'milliseconds': afterimage._timestamp_of(number, 1000),
        'microseconds': "timestamp_micros(" ~ number ~ ")",
        'nanoseconds': "if(" ~ number ~ " % 1000 = 0, timestamp_micros(" ~ number ~ " div 1000), null)",
    } -%}
    {%- if encoding == 'days' -%}
        {{ return("coalesce(cast(date_from_unix_date(try_cast(" ~ value ~ " as int)) as string), " ~ value ~ ")") }}
    {%- elif encoding in times -%}
        {{ return("coalesce(cast(" ~ times[encoding] ~ " as string), " ~ value ~ ")") }}
    {%- elif encoding == 'by_schema' -%}
        {#- a number is not a time unless something says what it counts #}
        {{ return("if(" ~ value ~ " rlike '^-?[0-9]+$', '?', " ~ value ~ ")") }}
    {%- elif encoding == 'extended_json' -%}
        {{ return(afterimage._of_extended_json(value, column.data_type.split('(')[0])) }}
    {%- elif encoding in ('time_milliseconds', 'time_microseconds') -%}
        {%- set factor = 1000 if encoding == 'time_milliseconds' else 1 -%}
        {{ return("coalesce(" ~ afterimage._time_of_day("try_multiply(" ~ number ~ ", " ~ factor ~ "L)") ~ ", " ~ value ~ ")") }}
    {%- elif encoding == 'base64' -%}
        {#- as hex digits, which _cast_column reads #}
        {{ return(afterimage._or_unreadable("hex(try_to_binary(" ~ value ~ ", 'base64'))", value)) }}
    {%- elif encoding == 'unscaled_base64' -%}
        {%- set scale = column.data_type.split(',')[1].rstrip(')') -%}
        {{ return(afterimage._or_unreadable("concat(" ~ afterimage._base64_integer(value) ~ ", 'E-" ~ scale ~ "')", value)) }}
    {%- elif encoding == 'scaled_base64' -%}
        {%- set unscaled = afterimage._base64_integer("get_json_object(" ~ value ~ ", '$.value')") -%}
        {%- set scale = "try_cast(get_json_object(" ~ value ~ ", '$.scale') as int)" -%}
        {{ return(afterimage._or_unreadable("concat(" ~ unscaled ~ ", 'E', -" ~ scale ~ ")", value)) }}
    {%- endif -%}
    {{ return(value) }}
{% endmacro %}


{#
    A value of MongoDB Extended JSON as text, such as {"$numberLong":"7"} or {"$date":1772452800000}; others are as they are.
    Source: MongoDB manual, "MongoDB Extended JSON (v2)", and for dates and binaries as Debezium writes them, its legacy form.
#}
{% macro _of_extended_json(value, kind) %}
    {%- if kind in ('date', 'timestamp', 'timestamp_ntz') -%}
        {%- set time = "nullif(regexp_extract(" ~ value ~ ", '^[{]\"[$]date\":(?:[{]\"[$]numberLong\":)?\"?([^\"}]*)', 1), '')" -%}
        {%- set number = "try_cast(" ~ time ~ " as bigint)" -%}
        {{ return(
            "coalesce(cast(" ~ afterimage._timestamp_of(number, 1000) ~ " as string), " ~ time ~ ", " ~ value ~ ")"
        ) }}
    {%- elif kind == 'binary' -%}
        {%- set text = "nullif(regexp_extract(" ~ value ~ ", '^[{]\"[$]binary\":(?:[{]\"base64\":)?\"([^\"]*)\"', 1), '')" -%}
        {{ return(afterimage._or_unreadable("hex(try_to_binary(" ~ text ~ ", 'base64'))", value)) }}
    {%- endif -%}
    {{ return(
        "coalesce(nullif(regexp_extract(" ~ value
        ~ ", '^[{]\"[$](?:oid|uuid|symbol|number[A-Z][a-z0-9]+)\":\"([^\"]*)\"[}]$', 1), ''), " ~ value ~ ")"
    ) }}
{% endmacro %}


{#
    Microseconds since midnight as text, NULL for NULL. A column of times of day may also hold 24:00, or a duration that is
    longer or negative (MySQL): hours then go on, after a minus sign. `avro_form.py` writes times of day in the same way.
#}
{% macro _time_of_day(microseconds) %}
    {{- return(
        "if(" ~ microseconds ~ " is null, null, format_string('%s%02d:%02d:%02d.%06d', if(" ~ microseconds ~ " < 0, '-', '')"
        ~ ", abs(" ~ microseconds ~ " div 3600000000), abs(" ~ microseconds ~ " div 60000000 % 60)"
        ~ ", abs(" ~ microseconds ~ " div 1000000 % 60), abs(" ~ microseconds ~ " % 1000000)))"
    ) -}}
{% endmacro %}


{# A time from a number of units of so many microseconds; NULL beyond the range of times, where Spark's own functions fail. #}
{% macro _timestamp_of(number, microseconds) %}
    {{- return("timestamp_micros(try_multiply(" ~ number ~ ", " ~ microseconds ~ "L))") -}}
{% endmacro %}


{# A decoded text, or where a value that is not NULL has none, `?`, which no cast takes. #}
{% macro _or_unreadable(decoded, value) %}
    {{ return("if(" ~ value ~ " is null, null, coalesce(" ~ decoded ~ ", '?'))") }}
{% endmacro %}


{#
    Base64 of a whole number of up to 16 bytes, the highest first, with a sign, as decimal text; NULL for anything else.
    conv() ends at 64 bits, hence two halves; of a negative number x they are those of -x - 1, which fits as x does.
#}
{% macro _base64_integer(value) %}
    {%- set digits = "hex(try_to_binary(" ~ value ~ ", 'base64'))" -%}
    {%- set is_negative = digits ~ " >= '8'" -%}
    {%- set inverted = "translate(" ~ digits ~ ", '0123456789ABCDEF', 'FEDCBA9876543210')" -%}
    {%- set all = "lpad(if(" ~ is_negative ~ ", " ~ inverted ~ ", " ~ digits ~ "), 32, '0')" -%}
    {%- set high = "cast(conv(left(" ~ all ~ ", 16), 16, 10) as decimal(20, 0))" -%}
    {%- set low = "cast(conv(right(" ~ all ~ ", 16), 16, 10) as decimal(20, 0))" -%}
    {%- set whole = "try_add(try_multiply(" ~ high ~ ", 18446744073709551616), " ~ low ~ ")" -%}
    {%- set text = "cast(if(" ~ is_negative ~ ", -1 - " ~ whole ~ ", " ~ whole ~ ") as string)" -%}
    {{ return("if(length(" ~ digits ~ ") between 2 and 32, " ~ text ~ ", null)") }}
{% endmacro %}


{#
    The encoding of a column: the one that `encodings` gives it, else the one of its type; stops where the column's type
    cannot have it.
#}
{% macro _encoding(macro, table, column, settings) %}
    {%- set kind = column.data_type.split('(')[0] -%}
    {%- set encoding = settings.encodings.get(column.name) or settings.type_encodings.get(kind, 'text') -%}
    {%- set allowed = adapter.afterimage.types_of_encoding(encoding) -%}
    {%- if 'any' not in allowed and kind not in allowed -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " gives the column `" ~ column.name ~ "`, " ~ column.data_type
            ~ ", the encoding " ~ encoding ~ ", which is for " ~ allowed | join(', ') ~ ". Fix: correct the column in"
            ~ " `encodings`, or its data_type."
        ) }}
    {%- endif -%}
    {{ return(encoding) }}
{% endmacro %}
