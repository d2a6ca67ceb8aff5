{# Parts of stage_change_feed for records that hold images: a struct or a map with the data columns, or columns with a prefix. #}

{# Whether a record holds its images in structs or maps, or the one before in columns with a prefix. #}
{% macro _has_images(settings) %}
    {{ return(settings.after is not none or settings.is_before_in_record) }}
{% endmacro %}


{#
    The columns of the images as {name, data_type}: those of a struct; those that are declared where the image is a map of
    texts. Empty where they are columns of the raw table.
#}
{% macro _image_columns(macro, table, relation, settings) %}
    {%- if settings.json_text -%}
        {%- if not settings.declared_columns -%}
            {{ exceptions.raise_compiler_error(
                "`" ~ macro ~ "`: table " ~ table ~ " declares no columns, and a JSON document does not contain their types."
                ~ " Fix: declare the data columns under `columns` of the source table, each with its data_type."
            ) }}
        {%- endif -%}
        {%- set found = [] -%}
        {%- for column in settings.declared_columns -%}
            {%- do found.append({'name': column.name, 'data_type': 'string'}) -%}
        {%- endfor -%}
        {{ return(found) }}
    {%- elif settings.after is not none -%}
        {{ return(adapter.afterimage.fields_of(relation, settings.after, table)) }}
    {%- endif -%}
    {{ return([]) }}
{% endmacro %}


{# The raw column with a column's value before an update, by the prefix that `before` is; none where there is none. #}
{% macro _old_column(name, raw_columns, settings) %}
    {{ return(afterimage._same_name(settings.before[:-1] ~ name, raw_columns | map(attribute='name') | list)) }}
{% endmacro %}


{#
    CTEs from the raw table to `images`: a row per image, its data columns by name, and those of _feed_event. A key column
    that a before image lacks did not change, so it is that of the after image.

    Arguments:
      has_images_before  a record of an update gives two rows, the image after (U) and the one before (B)
#}
{% macro _feed_image_rows(table, relation, raw_columns, settings, data, mask_parts, has_images_before) -%}
{%- if settings.schemas %}
messages as (
    select
        *,
        {{ afterimage._registered_message(settings.schemas) | indent(8) }}
    from {{ relation }}
    {%- if settings.filter %}
    where {{ settings.filter }}
    {%- endif %}
),

{% endif -%}
records as (
    select
        *
        {%- if settings.json_text %},
        -- Spark moves no condition on what a generator yields below it, where each reference would parse the document again
        {{ afterimage._json_record(settings, data) | indent(8) }}
        {%- endif %}
    from {{ 'messages' if settings.schemas else relation }}
    {%- if settings.filter and not settings.schemas %}
    where {{ settings.filter }}
    {%- endif %}
),

events as (
    select
        {{ afterimage._feed_event(settings, data, mask_parts) | indent(8) }},
        {{ afterimage._raw_record(raw_columns, is_binary_text=settings.json_text is not none and not settings.schemas) | indent(8) }} as _raw_record,
        {%- if settings.json_text %}
        {{ settings.json_text }} as _record_text,
        {{ settings.json_text }} is not null and (record is null or record._malformed is not null) as _is_malformed,
        {%- else %}
        cast(null as string) as _record_text,
        false as _is_malformed,
        {%- endif %}
        {%- if settings.json_payload or settings.schemas %}
        _schema_encodings,
        {%- endif %}
        {%- if settings.schemas %}
        _schema_id,
        {%- endif %}
        {{ afterimage._feed_images(table, raw_columns, settings, data) | indent(8) }}
    from records
),

split as (
    select
        *,
        {%- if has_images_before %}
        explode(if(_letter = 'U' and _before is not null, array('U', 'B'), array(_letter))) as _change_oper
        {%- else %}
        _letter as _change_oper
        {%- endif %}
    from events
),

chosen as (
    select
        *,
        {%- if settings.is_before_in_record %}
        case
            when _change_oper = 'B' then _before
            when _change_oper = 'D' then coalesce(_before, _after)
            else _after
        end as _image
        {%- else %}
        _after as _image
        {%- endif %}
    from split
),

images as (
    select
        *
        {%- if settings.unavailable_value is not none %},
        {%- if settings.json_text %}
        {{ afterimage._keys_of_unavailable('_image', afterimage._unavailable_spellings('string', settings)) }} as _unavailable
        {%- else %}
        {{ afterimage._unavailable(data, settings, '_image.') }} as _unavailable
        {%- endif %}
        {%- endif %}
        {%- for column in data %},
        {%- set value = afterimage._image_value('_image', column) %}
        {%- if settings.is_before_in_record and column.name | lower in settings.key | map('lower') %}
        {%- set value = "coalesce(" ~ value ~ ", if(_change_oper = 'B', " ~ afterimage._image_value('_after', column) ~ ", null))" %}
        {%- endif %}
        {{ afterimage._decoded_value(value, column, settings) if column.is_in_map else value }} as {{ afterimage._quoted(column.raw_name) }}
        {%- endfor %}
    from chosen
)
{%- endmacro %}


{# SQL: what an image, a map of texts or a struct, has for a column. #}
{% macro _image_value(image, column) %}
    {%- if column.is_in_map -%}
        {{ return("element_at(" ~ image ~ ", " ~ afterimage._text(column.name) ~ ")") }}
    {%- endif -%}
    {{ return(image ~ "." ~ afterimage._quoted(column.raw_name)) }}
{% endmacro %}


{#
    The columns that a JSON document gives, as a generator: `record`, the document or the one in its field `json_payload`, as a
    struct in which `_malformed` is the text of what is not a document; with `after: whole document`, `_document`, the same as a map;
    and where documents may come with a schema, `_schema_encodings`, the encoding that it gives each data column, by the name in
    lower case.
#}
{% macro _json_record(settings, data) -%}
    {%- set text, payload = settings.json_text, settings.json_payload -%}
    {%- set fields = settings.json_fields ~ ', _malformed string' -%}
    {%- set record = "from_json(" ~ text ~ ", " ~ afterimage._text(fields) ~ ", map('columnNameOfCorruptRecord', '_malformed'))" -%}
    {%- set with_schema = "schema struct<fields: array<struct<field: string, name: string, "
        ~ "fields: array<struct<field: string, name: string>>>>>, " ~ payload ~ " struct<" ~ fields ~ ">" -%}
inline(transform(
    array(
        {%- if payload %}
        if(
            contains({{ text }}, {{ afterimage._text('"' ~ payload ~ '"') }}),
            from_json({{ text }}, {{ afterimage._text(with_schema) }}),
            null
        )
        {%- else %}
        {{ record }}
        {%- endif %}
    ),
    message -> struct(
        {%- if settings.after == 'whole document' %}
        from_json(
            {{ "coalesce(get_json_object(" ~ text ~ ", '$." ~ payload ~ "'), " ~ text ~ ")" if payload else text }},
            'map<string, string>'
        ) as _document,
        {%- endif %}
        {%- if payload %}
        {{ afterimage._schema_encodings('message.schema.fields', data) | indent(8) }} as _schema_encodings,
        coalesce(message.{{ payload }}, {{ record }}) as record
        {%- else %}
        {%- if settings.schemas %}
        {{ afterimage._registered_encodings(settings.schemas) | indent(8) }} as _schema_encodings,
        {%- endif %}
        message as record
        {%- endif %}
    )
)) as (
    {{- '_document, ' if settings.after == 'whole document' }}
    {{- '_schema_encodings, ' if payload or settings.schemas }}
    {{- 'record' -}}
)
{%- endmacro %}


{# `_after` and `_before`, the two images of a record. #}
{% macro _feed_images(table, raw_columns, settings, data) -%}
{%- set names = data | map(attribute='name') | list -%}
{%- if settings.json_text -%}
{{ afterimage._image_by_name(table, '_document' if settings.after == 'whole document' else settings.after, names) }} as _after
{%- elif settings.after is not none -%}
{{ settings.after }} as _after
{%- else -%}
struct(
    {%- for column in data %}
    {{ afterimage._quoted(column.raw_name) }}{{ ',' if not loop.last }}
    {%- endfor %}
) as _after
{%- endif %}
{%- if settings.before.endswith('*') -%}
{%- set with_old = data | selectattr('has_before') | list -%}
,
if(
    {%- for column in with_old %}
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
{%- elif settings.is_before_in_record and settings.json_text -%}
,
{{ afterimage._image_by_name(table, settings.before, names) }} as _before
{%- elif settings.is_before_in_record -%}
,
{{ settings.before }} as _before
{%- endif %}
{%- endmacro %}


{# What is hashed of an image, as _record_hash takes it: its values, and which change it belongs to. #}
{% macro _hashed_of_image(data) %}
    {%- set columns = [{'name': '_change_seq', 'data_type': 'string'}, {'name': '_change_oper', 'data_type': 'string'}] -%}
    {%- for column in data -%}
        {%- do columns.append({'name': column.raw_name, 'data_type': column.raw_type}) -%}
    {%- endfor -%}
    {{ return(columns) }}
{% endmacro %}
