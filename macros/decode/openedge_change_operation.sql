{#
    The contract's letter for an operation of OpenEdge, a number from 1 to 12: I, D, B, U, T or N; NULL for any other.
    demo/seeds/openedge/openedge_operations.csv says what each means; demo/tests/openedge/ holds the two together.
#}
{% macro openedge_change_operation(operation) -%}
case
    when {{ operation }} = 1 then 'I'
    when {{ operation }} = 2 then 'D'
    when {{ operation }} = 3 then 'B'
    when {{ operation }} = 4 then 'U'
    when {{ operation }} between 6 and 11 then 'T'
    when {{ operation }} in (5, 12) then 'N'
end
{%- endmacro %}
