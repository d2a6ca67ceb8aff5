{#
    Stops when a data column has a name that the contract or the change log gives to a column of its own, or when two differ
    in case only: Spark and all settings ignore case.
#}
{% macro _check_data_columns(macro, table, names, settings, helpers=[]) %}
    {%- set reserved = adapter.afterimage.staged_columns() + afterimage._log_columns(settings) + helpers -%}
    {%- for name in names if name | lower in reserved -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has a data column `" ~ name ~ "`, and the change-event contract gives that"
            ~ " name to a column of its own. Fix: " ~ adapter.afterimage.way_to_rename(settings)
        ) }}
    {%- endfor -%}
    {%- set lower_case = names | map('lower') | list -%}
    {%- for name in names if lower_case.count(name | lower) > 1 and name != names[lower_case.index(name | lower)] -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has the data columns `" ~ names[lower_case.index(name | lower)] ~ "` and `"
            ~ name ~ "`, which differ in case only; Spark ignores case. Fix: rename one of them where the table is landed."
        ) }}
    {%- endfor -%}
{% endmacro %}


{# The optional columns of the contract in rows that do not have them, each followed by a comma. #}
{% macro _no_optional_columns(settings) -%}
    {%- for name, type in settings.optional_columns.items() %}
cast(null as {{ type }}) as {{ name }},
    {%- endfor %}
{%- endmacro %}
