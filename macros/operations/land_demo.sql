{#
    Lands one batch of the demo's raw change tables: dbt run-operation land_demo --args '{batch: 1}'.
    A run-operation, because it runs in the Spark session of the profile's target.

    Arguments:
      batch   1 creates the raw tables anew, 2 adds to them, and so on
      scale   size of the data; 1 has about 2,500 change records
      seed    of the generator
      system  whose demo
#}
{% macro land_demo(batch, scale=1, seed=7, system='qlik') %}
    {%- do run_query("create schema if not exists " ~ var('demo_raw_schema')) -%}
    {%- do adapter.afterimage_land_demo(system, batch | int, var('demo_raw_schema'), scale | int, seed | int) -%}
    {%- do log("Landed batch " ~ batch ~ " of the demo of " ~ system ~ " in " ~ var('demo_raw_schema'), info=true) -%}
{% endmacro %}
