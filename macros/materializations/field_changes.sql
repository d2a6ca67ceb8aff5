{# Materialization of `<table>_field_changes`: one row per field that a change changed, see `_materialize_mart`. #}
{% materialization field_changes, adapter='spark' %}
    {{ return(afterimage._materialize_mart('field_changes')) }}
{% endmaterialization %}
