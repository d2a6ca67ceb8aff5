{# Stores the model's descriptions as comments of its table, as `persist_docs` says. #}
{% macro _persist_descriptions(relation) %}
    {%- do adapter.afterimage.describe_table(
        relation, afterimage._relation_description(), afterimage._column_descriptions()
    ) -%}
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
