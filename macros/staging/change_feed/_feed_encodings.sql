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
