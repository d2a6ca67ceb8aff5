{#
    Fields that were removed from captured tables, and fields that were added: the operations 5 and 12 of OpenEdge's
    tracking table. They change no row, so no change log holds them.

    Arguments: those of openedge_activity.
#}
{% macro openedge_schema_events(source_name, tracking, tables) %}
    {{- config(materialized='staging_view') -}}
    {{ return(afterimage._openedge_tracking_events('openedge_schema_events', source_name, tracking, tables, [5, 12])) }}
{% endmacro %}
