{#
    Overrides dbt-spark's listing of a schema. On Iceberg catalogs its `show table extended` returns no views: `get_relation`
    of a view is then none, and a view cannot become a table. It also describes every table in turn, so that the start grows
    with the schema. There: two statements per schema.
    In other catalogs this is dbt-spark's listing without columns, which dbt docs then read table by table: dbt-spark would
    take the fields of a struct for columns of the table.
#}
{% macro spark__list_relations_without_caching(relation) %}
    {%- set listing = [] -%}
    {%- if not adapter.afterimage.is_iceberg_catalog() -%}
        {%- for row in run_query("show table extended in " ~ relation.schema ~ " like '*'") if not row['isTemporary'] -%}
            {%- do listing.append([row['namespace'], row['tableName'], false, row['information'].split('\nSchema:')[0]]) -%}
        {%- endfor -%}
        {{ return(listing) }}
    {%- endif -%}
    {%- set views = [] -%}
    {%- for row in run_query("show views in " ~ relation.schema) if not row['isTemporary'] -%}
        {%- do views.append(row['viewName']) -%}
        {%- do listing.append([relation.schema, row['viewName'], false, 'Type: VIEW']) -%}
    {%- endfor -%}
    {%- for row in run_query("show tables in " ~ relation.schema) if not row['isTemporary'] and row['tableName'] not in views -%}
        {%- do listing.append([relation.schema, row['tableName'], false, 'Type: MANAGED\nProvider: iceberg']) -%}
    {%- endfor -%}
    {{ return(listing) }}
{% endmacro %}
