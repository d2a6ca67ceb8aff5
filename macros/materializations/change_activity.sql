{# Materialization of `change_activity`: counts of changes per table and hour, see `_materialize_mart`. #}
{% materialization change_activity, adapter='spark' %}
    {{ return(afterimage._materialize_mart('change_activity')) }}
{% endmaterialization %}
