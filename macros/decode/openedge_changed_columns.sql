{#
    The columns that a list of names declares changed: array<string>, in the order of the columns; NULL for NULL.

    The list is what the vendor's SQL function CDC_get_changed_columns yields: `F1;F2;F5`. Names are compared without
    regard to capitals and to hyphens that a loader has turned into underscores; the place of an element in brackets is
    left out. A name that is none of the columns adds nothing: the extract does not hold that field.

    Arguments:
      list          the text
      data_columns  the columns
#}
{% macro openedge_changed_columns(list, data_columns) -%}
if(
    {{ list }} is null,
    null,
    filter(
        array({% for name in data_columns %}{{ afterimage._text(name) }}{{ ', ' if not loop.last }}{% endfor %}),
        name -> array_contains(
            transform(
                split(replace(lower({{ list }}), '-', '_'), ';'),
                listed -> regexp_replace(trim(listed), '\\[[0-9]+\\]$', '')
            ),
            replace(lower(name), '-', '_')
        )
    )
)
{%- endmacro %}
