{#
    A var of the project or of one run, with its default. The defaults are declared here and not in dbt_project.yml, because
    the models of a project that installs the package do not see the package's own vars.
#}
{% macro _var(name) %}
    {%- set defaults = {
        'beginning_of_time': '1900-01-01 00:00:00',
        'field_changes_of_inserts_and_deletes': false,
        'backfill_from': none,
        'rebuild_changes': false,
        'accept_gap': false,
        'complete_load': [],
        'force_full_replay': false,
    } -%}
    {{ return(var(name, defaults[name])) }}
{% endmacro %}
