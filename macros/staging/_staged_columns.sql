{#
    Columns of every staging model, in order; the data columns follow. src/dbt_afterimage/change_log/contract.py lists them too.
    The optional ones of the table's system (`settings.optional_columns`) stand behind `transaction_event`.
    `partner_may_follow` may be missing.
#}
{% macro _staged_columns() %}
    {{ return([
        'change_seq', 'change_oper', 'changed_at', 'source_timestamp', 'transaction_id', 'transaction_event',
        'declared_changed_columns', 'known_columns', 'partner_may_follow', 'truncate_scope', 'load_id', 'arrival',
        'reject_reason', 'record_hash', 'raw_record',
    ]) }}
{% endmacro %}


{# Stops when a data column has a name that the contract or the change log gives to a column of its own. #}
{% macro _check_data_columns(macro, table, names, settings, helpers=[]) %}
    {%- set reserved = afterimage._staged_columns() + afterimage._log_columns(settings) + helpers -%}
    {%- for name in names if name | lower in reserved -%}
        {{ exceptions.raise_compiler_error(
            "`" ~ macro ~ "`: table " ~ table ~ " has a data column `" ~ name ~ "`, and the change-event contract gives that"
            ~ " name to a column of its own. Fix: put a view over the table that renames the column and keeps the order of"
            ~ " the columns, and declare the view as the source table."
        ) }}
    {%- endfor -%}
{% endmacro %}


{# The optional columns of the contract in rows that do not have them, each followed by a comma. #}
{% macro _no_optional_columns(settings) -%}
    {%- for name, type in settings.optional_columns.items() %}
cast(null as {{ type }}) as {{ name }},
    {%- endfor %}
{%- endmacro %}
