{#
    The body of a `<table>_history` model: one row per version of a row, [valid_from, valid_to). The select names the
    model's input; the materialization `scd2_history` makes versions of it (src/dbt_afterimage/history).

    Arguments:
      changes  the change log, ref('<table>_changes')
      feed     true: keep `<table>_history_feed`, what each publication did to the history
#}
{% macro history(changes, feed=false) %}
    {{- config(materialized='scd2_history', partition_by=['is_current']) -}}
    {{- config(feed=true) if feed -}}
    {{ return('select * from ' ~ changes) }}
{% endmacro %}


{# Columns that history adds to the data, besides its surrogate key. #}
{% macro _history_own_columns() %}
    {{ return(adapter.afterimage.history_own_columns()) }}
{% endmacro %}
