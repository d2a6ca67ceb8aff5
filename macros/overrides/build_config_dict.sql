{#
    Overrides dbt's macro that renders the config of a Python model, to hand our models what they cannot reach:
    settings of the source, names of their tables and the run's vars. dbt gives a Python model its own config only.
#}
{% macro build_config_dict(model) %}
{{ dbt.build_config_dict(model) }}
{%- if model.config.materialized in ('change_log', 'staging_log') and execute %}
config_dict["afterimage"] = {{ {
    'model': _noted_name(this),
    'settings': _settings_of(model),
    'log': this | string,
    'rejected': this.incorporate(path={'identifier': this.identifier ~ '_rejected'}) | string,
    'upstream': _upstream_relations(model),
    'progress': _progress_relation() | string,
    'file_format': adapter.afterimage.table_format(),
    'beginning_of_time': var('beginning_of_time'),
    'backfill_from': var('backfill_from') | string if var('backfill_from') else none,
    'rebuild_changes': var('rebuild_changes'),
    'accept_gap': var('accept_gap'),
    'complete_load': var('complete_load'),
    'tables': _message_tables(model) if model.config.materialized == 'staging_log' else [],
    'message_tables': _all_message_tables() if var('complete_load') else [],
} }}
{%- endif %}
{% endmacro %}


{# The names of what a change log reads: its staging view, what that reads, and so on down to tables. #}
{% macro _upstream_relations(node) %}
    {%- set names = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.sources or id in graph.nodes -%}
        {%- set upstream = graph.sources.get(id) or graph.nodes[id] -%}
        {%- do names.append(upstream.relation_name) -%}
        {%- if upstream.resource_type == 'model' and upstream.config.materialized == 'staging_view' -%}
            {%- do names.extend(_upstream_relations(upstream)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{% endmacro %}
