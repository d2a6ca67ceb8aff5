{# Hex text as binary, with or without 0x in front, of even or odd length; NULL when it is not hex. #}
{% macro _hex_to_binary(text) %}
    {{- return(
        "unhex(if(" ~ text ~ " like '0x%' or " ~ text ~ " like '0X%', substr(" ~ text ~ ", 3), " ~ text ~ "))"
    ) -}}
{% endmacro %}
