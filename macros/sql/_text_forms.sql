{#
    How a value reads as text; no other place defines it. The form depends on the value and its type alone, so equal values
    have equal texts, whatever the mode of the session. NULL has no text.

      boolean              true, false
      integer              its digits
      decimal              all digits of its scale, no exponent: 0.0000000001
      float, double        the fewest digits that read back as the same number: 0.1, 1.0E-10, NaN, Infinity; of -0.0 that
                           of 0.0, which equals it
      string               itself
      binary               hex digits
      date                 2026-03-02
      timestamp            ISO 8601 in UTC with microseconds: 2026-03-02T07:30:00.500000Z
      timestamp_ntz        the same without a zone: 2026-03-02T07:30:00.500000
      array, struct, map   JSON without blanks. NULL is null; numbers and booleans are bare; any other value is its text in
                           quotes. The entries of a map are in the order of their keys.

    Arguments: an expression and its type, in the spelling of Spark's simpleString.
#}
{% macro _as_text(expression, data_type) %}
    {%- set kind = data_type | lower -%}
    {%- set scale = modules.re.match('decimal\\(\\d+,(\\d+)\\)', kind) -%}
    {%- if kind == 'string' or kind.startswith(('varchar', 'char')) -%}
        {{ return(expression) }}
    {%- elif kind in ('float', 'double') -%}
        {#- -0.0 + 0.0 is 0.0 -#}
        {{ return("cast(" ~ expression ~ " + " ~ kind ~ "(0) as string)") }}
    {%- elif kind == 'binary' -%}
        {{ return("hex(" ~ expression ~ ")") }}
    {%- elif kind == 'timestamp' -%}
        {{ return("date_format(" ~ expression ~ ", \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\")") }}
    {%- elif kind == 'timestamp_ntz' -%}
        {{ return("date_format(" ~ expression ~ ", \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")") }}
    {%- elif scale and scale.group(1) | int > 6 -%}
        {#- cast writes an exponent from the seventh zero on, unless the session is in ANSI mode -#}
        {{ return("replace(format_number(" ~ expression ~ ", " ~ scale.group(1) ~ "), ',', '')") }}
    {%- elif modules.re.match('(array<)+(string|boolean|(tiny|small|big)?int)>+$', kind) -%}
        {#- of these Spark's own JSON is the same -#}
        {{ return("to_json(" ~ expression ~ ")") }}
    {%- elif kind.startswith(('array<', 'struct<', 'map<')) -%}
        {{ return("if(" ~ expression ~ " is null, null, " ~ afterimage._nested_as_json(expression, data_type, 1) ~ ")") }}
    {%- endif -%}
    {{ return("cast(" ~ expression ~ " as string)") }}
{% endmacro %}


{# A value inside an array, a struct or a map as JSON; never NULL. `depth` keeps the names of lambda variables distinct. #}
{% macro _as_json(expression, data_type, depth) %}
    {%- set kind = data_type | lower -%}
    {%- set text = afterimage._as_text(expression, data_type) -%}
    {%- if kind.startswith(('array<', 'struct<', 'map<')) -%}
        {%- set text = afterimage._nested_as_json(expression, data_type, depth) -%}
    {%- elif kind in ('float', 'double') -%}
        {%- set text = "if(isnan(" ~ expression ~ ") or abs(" ~ expression ~ ") = double('infinity'), concat('\"', " ~ text
            ~ ", '\"'), " ~ text ~ ")" -%}
    {%- elif kind not in ('boolean', 'tinyint', 'smallint', 'int', 'bigint') and not kind.startswith('decimal') -%}
        {%- set text = afterimage._json_string(text) -%}
    {%- endif -%}
    {{ return("coalesce(" ~ text ~ ", 'null')") }}
{% endmacro %}


{# The JSON of an array, a struct or a map; what it is for NULL does not matter. #}
{% macro _nested_as_json(expression, data_type, depth) %}
    {%- set kind = data_type[:data_type.index('<')] | lower -%}
    {%- set inner = afterimage._type_parts(data_type) -%}
    {%- set item = 'item_' ~ depth -%}
    {%- if kind == 'array' -%}
        {{ return(
            "concat('[', array_join(transform(" ~ expression ~ ", " ~ item ~ " -> " ~ afterimage._as_json(item, inner[0], depth + 1)
            ~ "), ','), ']')"
        ) }}
    {%- elif kind == 'map' -%}
        {{ return(
            "concat('{', array_join(transform(array_sort(map_entries(" ~ expression ~ ")), " ~ item ~ " -> concat("
            ~ afterimage._json_string(afterimage._as_text(item ~ ".key", inner[0])) ~ ", ':', " ~ afterimage._as_json(item ~ ".value", inner[1], depth + 1)
            ~ ")), ','), '}')"
        ) }}
    {%- endif -%}
    {%- set fields = [] -%}
    {%- for field in inner -%}
        {%- set name, type = field.split(':', 1) -%}
        {%- do fields.append(
            afterimage._text((',' if not loop.first else '') ~ tojson(name) ~ ':') ~ ", "
            ~ afterimage._as_json(expression ~ "." ~ afterimage._quoted(name), type, depth)
        ) -%}
    {%- endfor -%}
    {{ return(
        "if(" ~ expression ~ " is null, null, concat('{', " ~ (fields + ["'}'"]) | join(', ') ~ "))"
    ) }}
{% endmacro %}


{# A text as a JSON string, in quotes. Spark writes JSON of arrays and structs only. #}
{% macro _json_string(text) %}
    {{ return("regexp_replace(to_json(array(" ~ text ~ ")), '^.|.$', '')") }}
{% endmacro %}


{# The text between the outermost angle brackets of a type, split at its commas: types, or name:type of a struct. #}
{% macro _type_parts(data_type) %}
    {%- set state = namespace(depth=0, part='') -%}
    {%- set parts = [] -%}
    {%- for letter in data_type[data_type.index('<') + 1:-1] -%}
        {%- if letter == ',' and state.depth == 0 -%}
            {%- do parts.append(state.part) -%}
            {%- set state.part = '' -%}
        {%- else -%}
            {%- set state.depth = state.depth + {'<': 1, '(': 1, '>': -1, ')': -1}.get(letter, 0) -%}
            {%- set state.part = state.part ~ letter -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(parts + [state.part] if state.part else parts) }}
{% endmacro %}
