{#
    Columns of every staging model, in order; the data columns follow. The optional ones of the table's system
    (`settings.optional_columns`) come after `transaction_event`. `partner_may_follow` may be missing.
#}
{% macro _staged_columns() %}
    {{ return(adapter.afterimage.staged_columns()) }}
{% endmacro %}


{# Stops when a data column has a name that the contract or the change log gives to a column of its own. #}
{% macro _check_data_columns(macro, table, names, settings, helpers=[]) %}
    {%- set reserved = afterimage._staged_columns() + afterimage._log_columns(settings) + helpers -%}
    {%- for name in names if name | lower in reserved -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has a data column `" ~ name ~ "`, and the change-event contract gives that"
            ~ " name to a column of its own. Fix: " ~ afterimage._way_to_rename(settings)
        ) }}
    {%- endfor -%}
{% endmacro %}


{# How a user can rename a data column: where the raw table holds the changes of all tables, no view over it can. #}
{% macro _way_to_rename(settings) %}
    {%- if settings.system == 'qlik_messages' or settings.json_text is defined and settings.json_text is not none -%}
        {{ return("let the replication tool rename the column: Qlik Replicate by a transformation, Kafka Connect by ReplaceField.") }}
    {%- elif settings.system == 'soliddb' -%}
        {{ return("rename the column at the server.") }}
    {%- endif -%}
    {{ return(
        "put a view over the table that renames the column and keeps the order of the columns, and declare the view as the"
        ~ " source table."
    ) }}
{% endmacro %}


{# The optional columns of the contract in rows that do not have them, each followed by a comma. #}
{% macro _no_optional_columns(settings) -%}
    {%- for name, type in settings.optional_columns.items() %}
cast(null as {{ type }}) as {{ name }},
    {%- endfor %}
{%- endmacro %}
