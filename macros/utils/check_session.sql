{# Runs before every dbt command that runs models: stops where the Spark session would give wrong times. #}
{% macro check_session() %}
    {%- if execute -%}
        {%- if adapter.afterimage_settings is not defined -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: dbt did not load the plugin dbt_afterimage, without which Python models are sent to Databricks."
                ~ " Install this project's package into the environment that runs dbt: `pip install -e .`, or `make setup`."
            ) }}
        {%- endif -%}
        {%- set zone = run_query("select current_timezone() as zone").rows[0][0] -%}
        {%- if zone not in ('UTC', 'Etc/UTC', 'Z', '+00:00') -%}
            {{ exceptions.raise_compiler_error(
                "`check_session`: the Spark session's time zone is " ~ zone ~ ", every time in this project is UTC."
                ~ " Set `spark.sql.session.timeZone: UTC` in the profile's server_side_parameters."
            ) }}
        {%- endif -%}
        {%- do _create_progress() -%}
        {%- for source in graph.sources.values() -%}
            {%- if source.meta.get('afterimage') or source.config.get('meta', {}).get('afterimage') -%}
                {%- do adapter.afterimage_settings(source) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
