{# Overrides dbt-spark's clause: the table format follows the target's catalog, it is not set per model. #}
{% macro spark__file_format_clause() %}
    using {{ adapter.afterimage.table_format() }}
{% endmacro %}
