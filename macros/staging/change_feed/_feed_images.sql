{# Parts of stage_change_feed for records that hold images: a struct or a map with the data columns, or columns with a prefix. #}

{# Whether a record of a feed holds its images in structs or maps, or the one before in columns with a prefix. #}
{% macro _has_images(settings) %}
    {{ return(settings.after is not none or settings.is_before_in_record) }}
{% endmacro %}


{# The rows of the raw table that belong to a feed, and the JSON documents in them opened as the struct `record`. #}
{% macro _feed_records(relation, settings) -%}
select
    *
    {%- if settings.json_text %},
    {{ afterimage._json_record(settings) | indent }} as record
    {%- endif %}
from {{ relation }}
{%- if settings.filter %}
where {{ settings.filter }}
{%- endif %}
{%- endmacro %}


{# A JSON document, or the one in its field `json_payload`, as a struct; `_malformed` is the text of what is no document. #}
{% macro _json_record(settings) -%}
    {%- set fields = afterimage._text(settings.json_fields ~ ', _malformed string') -%}
    {%- set options = "map('columnNameOfCorruptRecord', '_malformed')" -%}
    {%- if settings.json_payload -%}
coalesce(
    if(
        contains({{ settings.json_text }}, {{ afterimage._text('"' ~ settings.json_payload ~ '"') }}),
        from_json(
            {{ settings.json_text }},
            {{ afterimage._text(settings.json_payload ~ ' struct<' ~ settings.json_fields ~ ', _malformed string>') }}
        ).{{ settings.json_payload }},
        null
    ),
    from_json({{ settings.json_text }}, {{ fields }}, {{ options }})
)
    {%- else -%}
from_json({{ settings.json_text }}, {{ fields }}, {{ options }})
    {%- endif -%}
{%- endmacro %}


{#
    The data columns of a feed with images, as _typed_column gives them, and whether an image is a map of texts: `is_in_map`,
    with its `encoding`. `has_before` is false for a column without old values.
#}
{% macro _image_data(macro, table, relation, raw_columns, settings) %}
    {%- set types = {} -%}
    {%- for column in settings.declared_columns -%}
        {%- do types.update({column.name | lower: column.data_type}) -%}
    {%- endfor -%}
    {%- set data = [] -%}
    {%- for of_image in afterimage._image_columns(macro, table, relation, raw_columns, settings) -%}
        {%- set column = afterimage._typed_column(of_image.name, of_image, types.get(of_image.name | lower)) -%}
        {%- set is_in_map = settings.json_text is not none -%}
        {%- do column.update({
            'is_in_map': is_in_map,
            'encoding': afterimage._encoding(macro, table, column, settings) if is_in_map else 'text',
            'has_before': not settings.before.endswith('*')
                or afterimage._old_column(column.name, raw_columns, settings) is not none,
        }) -%}
        {%- do data.append(column) -%}
    {%- endfor -%}
    {{ return(data) }}
{% endmacro %}


{# The columns of the images as {name, data_type}: those of a struct; those that are declared where it is a map of texts. #}
{% macro _image_columns(macro, table, relation, raw_columns, settings) %}
    {%- if settings.json_text -%}
        {%- set found = [] -%}
        {%- for column in settings.declared_columns -%}
            {%- do found.append({'name': column.name, 'data_type': 'string'}) -%}
        {%- endfor -%}
        {%- if not found -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: table " ~ table ~ " declares no columns, and a JSON document does not tell their types."
                ~ " Fix: declare the data columns under `columns` of the source table, each with its data_type."
            ) }}
        {%- endif -%}
        {{ return(found) }}
    {%- elif settings.after is not none -%}
        {{ return(adapter.afterimage.fields_of(relation, settings.after, "`after` of source table " ~ table)) }}
    {%- endif -%}
    {{ return(raw_columns | rejectattr('name', 'in', afterimage._feed_columns(raw_columns, settings)) | list) }}
{% endmacro %}


{# The raw column with a column's value before an update, by the prefix that `before` is; none where there is none. #}
{% macro _old_column(name, raw_columns, settings) %}
    {{ return(afterimage._same_name(settings.before[:-1] ~ name, raw_columns | map(attribute='name') | list)) }}
{% endmacro %}


{# `_after` and `_before`, the two images of a record. #}
{% macro _feed_images(raw_columns, settings, data) -%}
{%- if settings.after is not none -%}
{{ settings.after }} as _after,
{%- else -%}
struct(
    {%- for column in data %}
    {{ afterimage._quoted(column.raw_name) }}{{ ',' if not loop.last }}
    {%- endfor %}
) as _after,
{%- endif %}
{% if settings.before.endswith('*') -%}
if(
    {%- for column in data if column.has_before %}
    {{ 'or ' if not loop.first }}{{ afterimage._quoted(afterimage._old_column(column.name, raw_columns, settings)) }} is not null
    {%- endfor %},
    struct(
        {%- for column in data %}
        {%- if column.has_before %}
        {{ afterimage._quoted(afterimage._old_column(column.name, raw_columns, settings)) }} as {{ afterimage._quoted(column.raw_name) }}
        {%- else %}
        cast(null as {{ column.raw_type | replace(',', ', ') }}) as {{ afterimage._quoted(column.raw_name) }}
        {%- endif %}{{ ',' if not loop.last }}
        {%- endfor %}
    ),
    null
) as _before
{%- elif settings.is_before_in_record -%}
{{ settings.before }} as _before
{%- else -%}
null as _before
{%- endif %}
{%- endmacro %}


{# Data columns that an image may lack, as _known_columns takes them, over `_image` and `_change_oper`. #}
{% macro _image_unknown(data, settings) %}
    {%- set unknown = [] -%}
    {%- for column in data -%}
        {%- set raw = afterimage._image_value(column) -%}
        {%- set conditions = [] -%}
        {%- if column.is_in_map -%}
            {%- do conditions.append("not map_contains_key(_image, " ~ afterimage._text(column.name) ~ ")") -%}
        {%- endif -%}
        {%- if settings.unavailable_value is not none and column.is_text -%}
            {%- set placeholders = afterimage._text(settings.unavailable_value) -%}
            {%- if column.encoding == 'base64' -%}
                {%- set placeholders = placeholders ~ ", base64(" ~ placeholders ~ ")" -%}
            {%- endif -%}
            {%- do conditions.append("coalesce(" ~ raw ~ " in (" ~ placeholders ~ "), false)") -%}
        {%- endif -%}
        {%- if not column.has_before -%}
            {%- do conditions.append("_change_oper = 'B'") -%}
        {%- elif column.name | lower in settings.incomplete_before | map('lower') -%}
            {%- do conditions.append("(_change_oper = 'B' and " ~ raw ~ " is null)") -%}
        {%- endif -%}
        {%- if conditions -%}
            {%- do unknown.append({'name': column.name, 'condition': conditions | join(' or ')}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(unknown) }}
{% endmacro %}


{# The raw value of a column in `_image`. #}
{% macro _image_value(column) %}
    {%- if column.is_in_map -%}
        {{ return("element_at(_image, " ~ afterimage._text(column.name) ~ ")") }}
    {%- endif -%}
    {{ return("_image." ~ afterimage._quoted(column.raw_name)) }}
{% endmacro %}
