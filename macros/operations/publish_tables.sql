{#
    Publishes the tables of a run if all of its nodes have passed: moves the tag `published` of each, and creates its view in
    the schema of the var `published_schema`. Without the var it does nothing.

    Arguments:
      results  of the dbt command, in the hook `on-run-end`; none in `afterimage publish`, which closes the run that
               AFTERIMAGE_RUN names, or publishes what earlier commands have held back
      accept   publish although nodes have failed
#}
{% macro publish_tables(results=none, accept=false) %}
    {%- set publication = afterimage._publication() if execute else none -%}
    {%- if publication -%}
        {%- if flags.WHICH == 'run-operation' -%}
            {%- do adapter.afterimage.close_run(publication, graph.nodes, accept) -%}
        {%- else -%}
            {%- do adapter.afterimage.end_publication(publication, graph.nodes, results, selected_resources) -%}
        {%- endif -%}
    {%- elif execute and flags.WHICH == 'run-operation' -%}
        {{ exceptions.raise_compiler_error(
            "`publish`: the project does not set the var `published_schema`. Nothing was published. Fix: set it in dbt_project.yml,"
            ~ " as docs/querying.md says."
        ) }}
    {%- endif -%}
{% endmacro %}


{#
    What is published, none where the project publishes nothing: {progress, schema, tables}, the tables by id of their node.
    Change logs and decoded logs are read by other models, and views read the tables themselves.
#}
{% macro _publication() %}
    {%- set custom = afterimage._var('published_schema') -%}
    {%- if custom is none -%}
        {{ return(none) }}
    {%- endif -%}
    {%- if adapter.afterimage.table_format() != 'iceberg' -%}
        {{ exceptions.raise_compiler_error(
            "The var `published_schema` is '" ~ custom ~ "', and the target's tables are Delta tables, which have no tags. Allowed: with"
            ~ " Iceberg tables. Nothing was written. Fix: remove the var; readers who need several tables at one state read them at a cut."
        ) }}
    {%- endif -%}
    {%- set left_out = ['view', 'ephemeral', 'staging_view', 'change_log', 'staging_log'] -%}
    {%- set tables = {} -%}
    {%- set aliases = {} -%}
    {%- set schema = generate_schema_name(custom, graph.nodes.values() | first) | trim -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized not in left_out -%}
        {%- if node.config.materialized == 'table' and node.config.file_format != 'iceberg' -%}
            {{ exceptions.raise_compiler_error(
                "The var `published_schema` is set, and " ~ node.unique_id ~ " is a `table` without `file_format: iceberg`: dbt-spark drops"
                ~ " such a table before it creates it, and with it the state that readers see. Nothing was written. Fix: in"
                ~ " dbt_project.yml, `+file_format: iceberg` for your models."
            ) }}
        {%- endif -%}
        {%- if node.alias in aliases or node.schema == schema -%}
            {{ exceptions.raise_compiler_error(
                "The var `published_schema` is '" ~ custom ~ "', and the view " ~ schema ~ "." ~ node.alias ~ " would be of "
                ~ node.unique_id ~ (" and of " ~ aliases[node.alias] if node.alias in aliases else ", whose table has that name")
                ~ ". Nothing was written. Fix: give one of the two another `alias`, or choose another schema."
            ) }}
        {%- endif -%}
        {%- do aliases.update({node.alias: node.unique_id}) -%}
        {%- do tables.update({node.unique_id: afterimage._relation_of(node) | string}) -%}
    {%- endfor -%}
    {{ return({'progress': afterimage._progress_relation() | string, 'schema': schema, 'tables': tables}) }}
{% endmacro %}
