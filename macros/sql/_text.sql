{# A text as an SQL literal. #}
{% macro _text(value) %}
    {{- return("'" ~ (value | string) | replace('\\', '\\\\') | replace("'", "\\'") ~ "'") -}}
{% endmacro %}
