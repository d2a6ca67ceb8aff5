{# The columns of an image: which are known, and under which names. #}

{#
    known_columns of a record in which some columns are unknown under a condition: NULL (all are known) where none is.

    Arguments:
      where    condition: the record may leave columns out
      columns  data columns
      unknown  those that it may leave out, as {name, condition}
#}
{% macro _known_columns(where, columns, unknown) -%}
{%- if not unknown -%}
    {{ return('cast(null as array<string>)') }}
{%- endif -%}
case
    when
        {{ where }}
        and (
            {%- for column in unknown %}
            {{ 'or ' if not loop.first }}{{ column.condition }}
            {%- endfor %}
        )
        then array_except(
            array(
                {%- for column in columns %}
                {{ afterimage._text(column.name) }}{{ ',' if not loop.last }}
                {%- endfor %}
            ),
            array(
                {%- for column in unknown %}
                if({{ column.condition }}, {{ afterimage._text(column.name) }}, ''){{ ',' if not loop.last }}
                {%- endfor %}
            )
        )
end
{%- endmacro %}


{# SQL: a name in the spelling of the data column that has it, in whatever case; any other name as it is. #}
{% macro _declared_name(name, names) %}
    {%- set pairs = [] -%}
    {%- for declared in names -%}
        {%- do pairs.append(afterimage._text(declared | lower) ~ ', ' ~ afterimage._text(declared)) -%}
    {%- endfor -%}
    {{ return("coalesce(element_at(map(" ~ pairs | join(', ') ~ "), lower(" ~ name ~ ")), " ~ name ~ ")") }}
{% endmacro %}


{#
    A map of texts by the names of the data columns: Spark and all settings ignore case, so a name in another case is the
    column's too. Stops the run where a record has one column twice.

    A map whose names are spelt like the columns is returned as it is: two lookups for each of its names.

    Arguments:
      table  for the error
      image  SQL: the map; it is written out several times
      names  the data columns, as records are to spell them
#}
{% macro _image_by_name(table, image, names) -%}
    {%- set listed, lowered = [], [] -%}
    {%- for name in names -%}
        {%- do listed.append(afterimage._text(name)) -%}
        {%- do lowered.append(afterimage._text(name | lower)) -%}
    {%- endfor -%}
    {%- set is_column = "lower(name) in (" ~ lowered | join(', ') ~ ")" -%}
if(
    exists(map_keys({{ image }}), name -> {{ is_column }} and name not in ({{ listed | join(', ') }})),
    if(
        size(array_distinct(transform(map_keys({{ image }}), name -> {{ afterimage._declared_name('name', names) }})))
        < size({{ image }}),
        raise_error(
            concat(
                {{ afterimage._text("Source table " ~ table ~ ": a record has a column in two spellings: ") }},
                array_join(
                    array_sort(
                        filter(
                            map_keys({{ image }}),
                            name -> {{ is_column }}
                            and size(filter(map_keys({{ image }}), other -> lower(other) = lower(name))) > 1
                        )
                    ),
                    ', '
                ),
                '. Column names ignore case. Fix: rename one of them at the source, or read the table through a view that does.'
            )
        ),
        transform_keys({{ image }}, (name, value) -> {{ afterimage._declared_name('name', names) }})
    ),
    {{ image }}
)
{%- endmacro %}
