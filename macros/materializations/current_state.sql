{# Materialization of `<table>_current`: the open versions of a history, see `_materialize_mart`. #}
{% materialization current_state, adapter='spark' %}
    {{ return(afterimage._materialize_mart('current')) }}
{% endmaterialization %}
