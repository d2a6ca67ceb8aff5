{#
    The contract's letter for an operation of a Qlik change table: I, U, D, B or T; NULL for any other operation.
    demo/seeds/qlik/qlik_operations.csv lists them; demo/tests/qlik/qlik_operations_agree.sql holds the two together.

    A TRUNCATE is found by `operation` first, because its change_oper is not documented. Without that column
    (`operation=none`) no truncate can be seen.
#}
{% macro qlik_change_operation(change_oper, operation=none) -%}
case
    {%- if operation %}
    when {{ operation }} = 'TRUNCATE' then 'T'
    {%- endif %}
    when {{ change_oper }} in ('I', 'U', 'D', 'B') then {{ change_oper }}
end
{%- endmacro %}
