{# Reject reasons that a record shows by itself. #}

{#
    True for a record whose time is more than a day ahead, for which it is rejected as `future_change_seq`. By the hour: Spark writes
    the time into the code that it generates, so it would compile that again in each run.
#}
{% macro _is_in_future() %}
    {{- return("_changed_at > date_trunc('hour', current_timestamp()) + interval 25 hours") -}}
{% endmacro %}


{#
    `when` branches of a case: the reject reason of the first raw column whose value its declared type cannot hold. Any
    text is an array.
#}
{% macro _when_uncastable(columns) %}
    {%- for column in columns if column.is_cast and not column.is_array %}
when
    {{ afterimage._is_uncastable(column) }}
    then {{ afterimage._text('uncastable_value:' ~ column.raw_name) }}
    {%- endfor %}
{%- endmacro %}


{# Condition: the declared type of some of these columns cannot hold its value. #}
{% macro _is_some_uncastable(columns) %}
    {%- set conditions = [] -%}
    {%- for column in columns -%}
        {%- do conditions.append('(' ~ afterimage._is_uncastable(column) ~ ')') -%}
    {%- endfor -%}
    {{ return(conditions | join('\n        or ')) }}
{% endmacro %}
