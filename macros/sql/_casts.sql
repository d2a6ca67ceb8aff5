{# Casts of raw columns to their declared types. A failed cast is a reject reason, never an error and never a silent NULL. #}

{# A time at the source; NULL for 1970-01-01, the placeholder for a time that is not known yet. #}
{% macro _known_time(time) -%}
if(
    {{ time }} >= timestamp '1970-01-02',
    {{ time }},
    null
)
{%- endmacro %}


{# A Spark type in one spelling, so that types can be compared as text. #}
{% macro _normal_type(data_type) %}
    {%- set type = data_type | lower | replace(' ', '') -%}
    {%- set spellings = {
        'integer': 'int', 'long': 'bigint', 'short': 'smallint', 'byte': 'tinyint', 'real': 'float',
        'timestamp_ltz': 'timestamp', 'decimal': 'decimal(10,0)', 'dec': 'decimal(10,0)', 'numeric': 'decimal(10,0)',
    } -%}
    {%- if type.startswith(('varchar', 'char')) -%}
        {{ return('string') }}
    {%- endif -%}
    {%- set type = spellings.get(type, type | replace('numeric(', 'decimal(') | replace('dec(', 'decimal(')) -%}
    {{ return(modules.re.sub('^decimal\\((\\d+)\\)$', 'decimal(\\1,0)', type)) }}
{% endmacro %}


{# A raw column as its declared type. Text becomes binary by its hex digits, as replication tools write it. #}
{% macro _cast_column(column) %}
    {%- if not column.is_cast -%}
        {{ return(afterimage._quoted(column.raw_name)) }}
    {%- elif column.is_array -%}
        {{ return(afterimage.openedge_array(afterimage._quoted(column.raw_name))) }}
    {%- elif column.is_text and column.data_type == 'binary' -%}
        {{ return(afterimage._hex_to_binary(afterimage._quoted(column.raw_name))) }}
    {%- endif -%}
    {{ return("try_cast(" ~ afterimage._quoted(column.raw_name) ~ " as " ~ column.data_type | replace(',', ', ') ~ ")") }}
{% endmacro %}


{# One of some raw columns, {name: {name, data_type}}, as text; NULL where there is none of the name. #}
{% macro _column_as_text(columns, name) %}
    {%- if name not in columns -%}
        {{ return('cast(null as string)') }}
    {%- elif afterimage._normal_type(columns[name].data_type) == 'string' -%}
        {{ return(afterimage._quoted(columns[name].name)) }}
    {%- endif -%}
    {{ return('cast(' ~ afterimage._quoted(columns[name].name) ~ ' as string)') }}
{% endmacro %}


{#
    Condition: a raw column that is not NULL has a value that its declared type cannot hold.
    Spark rounds to fit a decimal's scale, cuts a number to fit an integer, and a time of day to fit a date, takes `2026`
    for the first of January and `10:00` for ten o'clock today, and forgets nanoseconds, all silently: these count too.
    A floating-point number is inexact anyway, it may be rounded.
#}
{% macro _is_uncastable(column) %}
    {%- set raw = afterimage._quoted(column.raw_name) -%}
    {%- set value = afterimage._cast_column(column) -%}
    {%- set failed = raw ~ " is not null and " ~ value ~ " is null" -%}
    {%- set whole_date = '^ *[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}' -%}
    {%- set decimal = modules.re.match('decimal\\((\\d+),(\\d+)\\)', column.data_type) -%}
    {%- if decimal and column.raw_type.startswith('decimal') -%}
        {{ return("not (try_cast(" ~ value ~ " as " ~ column.raw_type | replace(',', ', ') ~ ") <=> " ~ raw ~ ")") }}
    {%- elif decimal and column.is_text -%}
        {#- as many digits after the point as fit next to the same number before it #}
        {%- set spare = 38 - decimal.group(1) | int -%}
        {%- set scale = spare + decimal.group(2) | int -%}
        {%- if spare -%}
            {%- set failed = failed ~ " or " ~ value ~ " <> try_cast(" ~ raw ~ " as decimal(38, " ~ scale ~ "))" -%}
        {%- endif -%}
        {#- digits behind these: the text itself has one where the type has none #}
        {%- set failed = failed ~ " or " ~ raw ~ " rlike '[.][0-9]{" ~ decimal.group(2) ~ "}[0-9]*[1-9][0-9]*[^0-9eE]*$'" -%}
        {#- in exponent form the exponent moves the point #}
        {%- set failed = failed ~ " or " ~ raw ~ " rlike '[1-9][0-9.]*[eE]'"
            ~ " and length(regexp_extract(" ~ raw ~ ", '[.]([0-9]*?)0*[eE]', 1))"
            ~ " - try_cast(regexp_extract(" ~ raw ~ ", '[eE]([+-]?[0-9]+)', 1) as int) > " ~ decimal.group(2) -%}
    {%- elif column.data_type in ('tinyint', 'smallint', 'int', 'bigint')
        and column.raw_type.startswith(('decimal', 'float', 'double')) -%}
        {{ return(failed ~ " or " ~ value ~ " <> " ~ raw) }}
    {%- elif column.data_type == 'date' and column.raw_type.startswith('timestamp') -%}
        {{ return(failed ~ " or " ~ value ~ " <> " ~ raw) }}
    {%- elif column.data_type == 'date' and column.is_text -%}
        {#- no time of day is lost at midnight #}
        {{ return(failed ~ " or not " ~ raw ~ " rlike '" ~ whole_date ~ "([ T]00:00(:00([.]0*)?)?)? *$'") }}
    {%- elif column.data_type.startswith('timestamp') and column.is_text -%}
        {#- a timestamp has six digits of a second -#}
        {%- set failed = failed ~ " or not " ~ raw ~ " rlike '" ~ whole_date ~ "' or " ~ raw ~ " rlike '[.][0-9]{6}[0-9]*[1-9]'" -%}
        {%- if column.data_type == 'timestamp_ntz' -%}
            {#- a time of day without a zone; Spark drops the one in the text -#}
            {%- set failed = failed ~ " or " ~ raw ~ " rlike ':.*([+-]|[A-Za-z] *$)' and not " ~ raw ~ " rlike '[0-9]Z *$'" -%}
        {%- endif -%}
        {{ return(failed) }}
    {%- elif column.data_type == 'boolean' and not column.is_text -%}
        {{ return(failed ~ " or " ~ raw ~ " not in (0, 1)") }}
    {%- elif column.data_type in ('float', 'double')
        and (column.is_text or column.raw_type.startswith(('decimal', 'double'))) -%}
        {#- too large a number becomes infinity -#}
        {%- set is_given = (raw ~ " rlike '(?i)inf'") if column.is_text else ("abs(" ~ raw ~ ") = double('infinity')") -%}
        {{ return(failed ~ " or abs(" ~ value ~ ") = double('infinity') and not " ~ is_given) }}
    {%- elif column.data_type == 'binary' and column.is_text -%}
        {{ return(failed ~ " or length(" ~ raw ~ ") % 2 = 1") }}
    {%- endif -%}
    {{ return(failed) }}
{% endmacro %}


{#
    A column's description for the macros above: its raw name and type, and the type that it shall have.
    `is_array`: its text is an array of OpenEdge, joined by `;`.
#}
{% macro _typed_column(name, raw, data_type, is_array=false) %}
    {%- set raw_type = afterimage._normal_type(raw.data_type) -%}
    {%- set target = afterimage._normal_type(data_type or raw.data_type) -%}
    {{ return({
        'name': name,
        'raw_name': raw.name,
        'raw_type': raw_type,
        'data_type': target,
        'is_text': raw_type == 'string',
        'is_cast': raw_type != target,
        'is_array': is_array,
    }) }}
{% endmacro %}
