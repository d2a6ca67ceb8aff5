{# Hash and text of a raw record. #}

{#
    A hash of a raw record's content, by which it is recognised when it arrives again. xxhash64 skips NULLs, so that
    (NULL, 1) and (1, NULL) would be equal: every value goes in with its column's name. The partition is left out: the
    same record may arrive again in a later one.

    Values go in as the change log holds them, so the hash of a record stays what it is when its raw table changes: a
    column may be added, a type may become wider, and text may become a number where the declared type says that it is one
    (decision 55). Numbers go in as the widest type of their kind.
    The comment records the types at that time: a view keeps them, and is written again only when its text changes.

    Arguments:
      raw_columns   those that are hashed, as [{name, data_type}]
      partition     one of them that is left out, or none
      typed         data columns as _typed_column gives them
      is_rejected   condition: the record is rejected, so that its values count as they came. What a cast would make of
                    them may be the value of another record
#}
{% macro _record_hash(raw_columns, partition=none, typed=[], is_rejected=none) -%}
{%- set casts = {} -%}
{%- for column in typed if column.is_cast and not column.is_array -%}
    {%- do casts.update({column.raw_name: column}) -%}
{%- endfor -%}
xxhash64( /* of columns {{ local_md5(tojson(raw_columns)) }} */
    {%- for column in raw_columns if not partition or column.name != partition.name %}
    {%- set raw = afterimage._quoted(column.name) %}
    if({{ raw }} is null, null, {{ afterimage._text(column.name | lower) }}),
    {%- if column.name in casts %}
    {{ afterimage._widest(column.name, afterimage._cast_column(casts[column.name]), casts[column.name].data_type) }}{{ ',' if not loop.last or casts }}
    {%- else %}
    {{ afterimage._widest(column.name, raw, column.data_type) }}{{ ',' if not loop.last or casts }}
    {%- endif %}
    {%- endfor %}
    {%- if casts %}
    if(
        {{ is_rejected or afterimage._is_some_uncastable(casts.values()) }},
        to_json(
            array(
                {%- for name in casts %}
                {{ afterimage._as_text(afterimage._quoted(name), casts[name].raw_type) }}{{ ',' if not loop.last }}
                {%- endfor %}
            )
        ),
        null
    )
    {%- endif %}
)
{%- endmacro %}


{# A value as the widest type that a table format would widen its type to. #}
{% macro _widest(name, value, data_type) %}
    {%- set type = afterimage._normal_type(data_type) -%}
    {%- if 'map<' in type or 'variant' in type -%}
        {{ exceptions.raise_compiler_error(
            "`_record_hash`: the raw column `" ~ name ~ "` is " ~ data_type ~ ". Spark can neither hash nor compare"
            ~ " maps and variants. Fix: read the table through a view that makes it text, with to_json for example."
        ) }}
    {%- endif -%}
    {%- set decimal = modules.re.match('decimal\\(\\d+,(\\d+)\\)', type) -%}
    {%- if type in ('tinyint', 'smallint', 'int') -%}
        {{ return("cast(" ~ value ~ " as bigint)") }}
    {%- elif type == 'float' -%}
        {{ return("cast(" ~ value ~ " as double)") }}
    {%- elif decimal -%}
        {{ return("cast(" ~ value ~ " as decimal(38, " ~ decimal.group(1) ~ "))") }}
    {%- endif -%}
    {{ return(value) }}
{% endmacro %}


{#
    The raw record as JSON. By default Spark would leave out NULLs, and cut timestamps to milliseconds.
    `is_binary_text`: binary columns hold text.
#}
{% macro _raw_record(raw_columns, is_binary_text=false) -%}
to_json(
    struct(
        {%- for column in raw_columns %}
        {%- set raw = afterimage._quoted(column.name) %}
        {{ "cast(" ~ raw ~ " as string) as " ~ raw if is_binary_text and column.data_type == 'binary' else raw }}{{ ',' if not loop.last }}
        {%- endfor %}
    ),
    map(
        'ignoreNullFields', 'false',
        'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX',
        'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'
    )
)
{%- endmacro %}
