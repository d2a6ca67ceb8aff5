{#
    Commit time of a change_seq of Qlik Replicate, UTC, to the hundredth of a second; NULL when it is not a valid time.

    Its first 16 digits are YYYYMMDDhhmmss and hundredths (vendor's page "Change Tables"). Written out and cast, because
    Spark's parser of custom formats takes 2.5 times as long, and make_timestamp turns second 60 into the next minute.
#}
{% macro change_seq_to_timestamp(change_seq) -%}
    {%- set parts = [] -%}
    {%- for start, length, mark in [
        (1, 4, '-'), (5, 2, '-'), (7, 2, 'T'), (9, 2, ':'), (11, 2, ':'), (13, 2, '.'), (15, 2, 'Z')
    ] -%}
        {%- do parts.append("substr(" ~ change_seq ~ ", " ~ start ~ ", " ~ length ~ "), '" ~ mark ~ "'") -%}
    {%- endfor -%}
{#- the year 0 is valid in Spark, but not in Python -#}
if(
    {{ change_seq }} >= '0001' and length({{ change_seq }}) >= 16,
    try_cast(
        concat(
            {{ parts | join(',\n            ') }}
        ) as timestamp
    ),
    null
)
{%- endmacro %}
