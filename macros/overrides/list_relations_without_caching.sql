{#
    Overrides dbt-spark's listing of a schema. Its `show table extended` fails for Iceberg catalogs, and the
    fallback never returns views: `get_relation` of a view is then none, a view cannot become a table, and the
    docs catalog has no views. It also describes every table in turn, so that the start grows with the schema.
    Here: two statements per schema. Session catalogs (Delta) list views among the tables, hence the difference.
#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- set file_format = adapter.afterimage.table_format() -%}
    {%- set statement -%}
        show views in {{ relation.schema }}
    {%- endset -%}
    {%- set views = [] -%}
    {%- for row in run_query(statement) -%}
        {%- if not row['isTemporary'] -%}
            {%- do views.append(row['viewName']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set listing = [] -%}
    {%- for name in views -%}
        {%- do listing.append([relation.schema, name, false, 'Type: VIEW']) -%}
    {%- endfor -%}
    {%- for row in run_query("show tables in " ~ relation.schema) -%}
        {%- if not row['isTemporary'] and row['tableName'] not in views -%}
            {%- do listing.append([relation.schema, row['tableName'], false, 'Type: MANAGED\nProvider: ' ~ file_format]) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(listing) }}
{% endmacro %}
