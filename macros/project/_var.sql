{#
    A var of the project or of one run, with its default. The defaults are declared here and not in dbt_project.yml, because
    the models of a project that installs the package do not see the package's own vars.
#}
{% macro _var(name) %}
    {%- set defaults = {
        'beginning_of_time': '1900-01-01 00:00:00',
        'field_changes_of_inserts_and_deletes': false,
        'published_schema': none,
        'backfill_from': none,
        'rebuild_changes': false,
        'accept_gap': false,
        'complete_load': [],
        'force_full_replay': false,
    } -%}
    {%- set value = var(name, defaults[name]) -%}
    {%- if name == 'beginning_of_time' -%}
        {#- YAML reads a date that is not in quotes as a date #}
        {%- set value = value | string -%}
        {%- if not adapter.afterimage.is_timestamp(value) -%}
            {{ exceptions.raise_compiler_error(
                "The var `beginning_of_time` is '" ~ value ~ "'. Allowed: a date or a time in UTC, such as"
                ~ " '1900-01-01 00:00:00'. Nothing was written. Fix: correct it in dbt_project.yml or --vars."
            ) }}
        {%- endif -%}
    {%- endif -%}
    {{ return(value) }}
{% endmacro %}
