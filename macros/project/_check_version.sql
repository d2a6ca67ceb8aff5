{#
    Stops where the macros are of another version than the Python package: a project installs the two separately, the macros by
    packages.yml and the package by pip. The version is that of dbt_project.yml and pyproject.toml; a test compares all three.
#}
{% macro _check_version() %}
    {%- set version = '0.1.0' -%}
    {%- set installed = adapter.afterimage.installed_version() -%}
    {%- if installed != version -%}
        {{ exceptions.raise_compiler_error(
            "`check_session`: the dbt package afterimage has version " ~ version ~ ", and the Python package dbt-afterimage has version "
            ~ installed ~ ". They work only at the same version. Nothing was written. Fix: `pip install dbt-afterimage==" ~ version
            ~ "`, or set the package's revision in packages.yml to " ~ installed ~ " and run `dbt deps`."
        ) }}
    {%- endif -%}
{% endmacro %}
