{#
    Merges the mart's small files once there are many. Change activity, which is small and has the settings of many tables,
    always does.
#}
{% macro _compact_at_end(target_relation, mart) %}
    {%- if mart == 'change_activity' or afterimage._settings_of(model).auto_compact -%}
        {%- do adapter.afterimage.compact_at_end(target_relation) -%}
    {%- endif -%}
{% endmacro %}
