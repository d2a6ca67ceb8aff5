{#
    Stops where the macros are of another version than the Python package: a project installs the two separately, the macros by
    packages.yml and the package by pip. A test compares the version with that of pyproject.toml.
#}
{% macro _check_version() %}
    {%- set version = '0.2.0.dev0' -%}
    {%- set installed = adapter.afterimage.installed_version() -%}
    {%- if installed != version -%}
        {{ exceptions.raise_compiler_error(
            "`check_session`: the dbt package afterimage has version " ~ version ~ ", and the Python package dbt-afterimage has version "
            ~ installed ~ ". They work only at the same version. Nothing was written. Fix: `pip install dbt-afterimage==" ~ version
            ~ "`, or set the package's revision in packages.yml to " ~ installed ~ " and run `dbt deps`."
        ) }}
    {%- endif -%}
{% endmacro %}
