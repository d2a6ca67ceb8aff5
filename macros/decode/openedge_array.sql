{#
    An array of OpenEdge, which arrives as text joined by `;`, as array<string>; NULL for NULL.

    `~;` is a `;` inside an element, and any other `~` is itself: what the vendor's function PRO_ARR_ESCAPE writes. So an
    element that ends in `~` cannot be distinguished from one that continues with `;`. An element `?` is unknown, that is NULL.
#}
{% macro openedge_array(text) -%}
transform(
    split({{ text }}, '(?<!~);'),
    element -> nullif(replace(element, '~;', ';'), '?')
)
{%- endmacro %}
