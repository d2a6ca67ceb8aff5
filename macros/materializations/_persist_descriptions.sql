{#
    What dbt's `persist_docs` does for our tables. dbt-spark's sends one `alter` per column in every run, each of them a
    commit, and never sets the table's own comment. Here only what differs is sent, in one statement: normally nothing.
#}
{% macro _persist_descriptions(relation) %}
    {%- if config.persist_relation_docs() or config.persist_column_docs() -%}
        {%- set stored = afterimage._stored_descriptions(relation) -%}
        {%- if config.persist_relation_docs() and model.description and stored.comment != model.description | trim -%}
            {%- do run_query("comment on table " ~ relation ~ " is '" ~ afterimage._escaped(model.description | trim) ~ "'") -%}
        {%- endif -%}
        {%- if config.persist_column_docs() -%}
            {%- set specs = [] -%}
            {%- for name, column in model.columns.items() -%}
                {%- if name in stored.columns and column.description and stored.columns[name] != column.description | trim -%}
                    {%- do specs.append(
                        afterimage._quoted(name) ~ " comment '" ~ afterimage._escaped(column.description | trim) ~ "'"
                    ) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- if specs -%}
                {%- do run_query("alter table " ~ relation ~ " alter column " ~ specs | join(", ")) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


{# Comments that a table has: {comment, columns: {name: comment}}. #}
{% macro _stored_descriptions(relation) %}
    {%- set stored = {'comment': none, 'columns': {}, 'in_columns': true} -%}
    {%- for row in run_query("describe table extended " ~ relation) -%}
        {%- if not row[0] or row[0].startswith('#') -%}
            {%- do stored.update({'in_columns': false}) -%}
        {%- elif stored.in_columns -%}
            {%- do stored.columns.update({row[0]: row[2]}) -%}
        {%- elif row[0] == 'Comment' -%}
            {%- do stored.update({'comment': row[1]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(stored) }}
{% endmacro %}


{# Text as the inside of a SQL literal. #}
{% macro _escaped(text) %}
    {{ return(text | replace("\\", "\\\\") | replace("'", "\\'")) }}
{% endmacro %}
