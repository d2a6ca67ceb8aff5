{#
    Who changed which rows when, from OpenEdge's tracking table alone: one row per create, update and delete. It is what
    there is of a table whose policy is at level 0 or 1, which records no values; it works at every level.

    Arguments:
      source_name  name of the dbt source
      tracking     the extract of `_Cdc-Change-Tracking` in it
      tables       source tables whose settings say their `table_number`; `mask_columns` of each, or its `columns` in the
                   order of its fields, give the field map names
#}
{% macro openedge_activity(source_name, tracking, tables) %}
    {{- config(materialized='staging_view') -}}
    {{ return(afterimage._openedge_tracking_events('openedge_activity', source_name, tracking, tables, [1, 2, 4])) }}
{% endmacro %}
