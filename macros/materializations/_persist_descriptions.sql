{#
    What dbt's `persist_docs` does for our tables. dbt-spark's sends one `alter` per column in every run, each of them a
    commit, and never sets the table's own comment. Here only what differs is sent, in one statement: normally nothing.
#}
{% macro _persist_descriptions(relation) %}
    {%- if config.persist_relation_docs() or config.persist_column_docs() -%}
        {%- set stored = afterimage._stored_descriptions(relation) -%}
        {%- if config.persist_relation_docs() and model.description and stored.comment != model.description | trim -%}
            {%- do run_query("comment on table " ~ relation ~ " is " ~ afterimage._text(model.description | trim)) -%}
        {%- endif -%}
        {%- if config.persist_column_docs() -%}
            {%- set specs = [] -%}
            {%- for name, column in model.columns.items() -%}
                {%- if name in stored.columns and column.description and stored.columns[name] != column.description | trim -%}
                    {%- do specs.append(
                        afterimage._quoted(name) ~ " comment " ~ afterimage._text(column.description | trim)
                    ) -%}
                {%- endif -%}
            {%- endfor -%}
            {%- if specs -%}
                {%- do run_query("alter table " ~ relation ~ " alter column " ~ specs | join(", ")) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}


{# What `persist_docs` says, {relation, columns}; both where the project does not set it. #}
{% macro _persisted_docs() %}
    {{ return(config.get('persist_docs') or {'relation': true, 'columns': true}) }}
{% endmacro %}


{# The model's description, where it is to be stored; else "". #}
{% macro _relation_description() %}
    {{ return(model.description if afterimage._persisted_docs().get('relation') else '') }}
{% endmacro %}


{# Column name -> description, of those that are to be stored. #}
{% macro _column_descriptions() %}
    {%- set descriptions = {} -%}
    {%- if afterimage._persisted_docs().get('columns') -%}
        {%- for name, column in model.columns.items() if column.description -%}
            {%- do descriptions.update({name: column.description}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(descriptions) }}
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
