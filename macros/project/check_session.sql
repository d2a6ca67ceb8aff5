{#
    Runs before every dbt command that runs models: stops where the session, or the project, would give wrong rows. It does
    nothing where no model of this package and no test of one is selected. The settings of source tables are checked before
    Spark starts (src/dbt_afterimage/dbt_spark/preflight.py).
#}
{% macro check_session() %}
    {%- set models = afterimage._selected_models() if execute else [] -%}
    {%- if models -%}
        {%- if adapter.afterimage is not defined -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: dbt did not load the plugin dbt_afterimage, without which Python models are sent to Databricks."
                ~ " Fix: install it into the environment that runs dbt: `pip install dbt-afterimage`; in a clone, `make setup`."
            ) }}
        {%- endif -%}
        {%- do afterimage._check_version() -%}
        {%- set zone = run_query("select current_timezone() as zone").rows[0][0] -%}
        {%- if zone not in ('UTC', 'Etc/UTC', 'Z', '+00:00') -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: the Spark session's time zone is " ~ zone ~ ", every time in this project is UTC."
                ~ " Set `spark.sql.session.timeZone: UTC` in the profile's server_side_parameters."
            ) }}
        {%- endif -%}
        {%- for option in ['empty', 'sample'] if invocation_args_dict.get(option) -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: --" ~ option ~ " is given. A run without all rows would be recorded as one that has read"
                ~ " everything. Nothing was written. Fix: leave --" ~ option ~ " out for models of this package; a run on the raw"
                ~ " tables of a test schema costs what they hold."
            ) }}
        {%- endfor -%}
        {%- do afterimage._check_letters(models) -%}
        {%- do afterimage._check_aliases() -%}
        {%- set published = afterimage._publication() -%}
        {%- do afterimage._create_progress() -%}
        {%- do adapter.afterimage.begin_publication(published) if published -%}
    {%- endif -%}
{% endmacro %}


{#
    The models of our materializations that are selected, or that a selected test reads; all of them if the macro is called
    by `dbt run-operation`, which selects nothing.
#}
{% macro _selected_models() %}
    {%- set kinds = ['staging_view'] + afterimage._recorded_materializations() -%}
    {%- set ids = graph.nodes | list if flags.WHICH == 'run-operation' else selected_resources -%}
    {%- set found = {} -%}
    {%- for id in ids if id in graph.nodes -%}
        {%- set node = graph.nodes[id] -%}
        {%- for model_id in (node.depends_on.nodes if node.resource_type == 'test' else [id]) -%}
            {%- set model_node = graph.nodes.get(model_id) -%}
            {%- if model_node and model_node.resource_type == 'model' and model_node.config.materialized in kinds -%}
                {%- do found.update({model_id: model_node}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(found.values() | list) }}
{% endmacro %}


{# Stops where dbt would not find a relation that it has created: it searches for names in lower case. #}
{% macro _check_letters(models) %}
    {%- for node in models -%}
        {%- set name = node.schema ~ '.' ~ node.alias -%}
        {%- if name != name | lower -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: " ~ node.unique_id ~ " is built as " ~ name ~ ", which has capital letters; the next run would not"
                ~ " find it. Nothing was written. Fix: small letters in `schema` of the profile, and in the model's schema and name."
            ) }}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}


{# Stops where two models have one name in the progress table: each would take the other's batches for its own. #}
{% macro _check_aliases() %}
    {%- set kinds = afterimage._recorded_materializations() -%}
    {%- set found = {} -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized in kinds -%}
        {%- set other = found.get(node.alias) -%}
        {%- if other -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: " ~ other.unique_id ~ " (" ~ other.schema ~ "." ~ other.alias ~ ") and " ~ node.unique_id
                ~ " (" ~ node.schema ~ "." ~ node.alias ~ ") both have the alias `" ~ node.alias ~ "`, under which their progress"
                ~ " is recorded: batches would be left out. Aliases of models with the materialization "
                ~ kinds | join(', ') ~ " must differ, also between schemas. Nothing was written. Fix: give one of the two"
                ~ " another `alias`, or another name."
            ) }}
        {%- endif -%}
        {%- do found.update({node.alias: node}) -%}
    {%- endfor -%}
{% endmacro %}


{# The materializations that record their progress. #}
{% macro _recorded_materializations() %}
    {{ return(['change_log', 'staging_log'] + afterimage._mart_materializations()) }}
{% endmacro %}
