{#
    What our Python models cannot reach by themselves: settings of the source, names of their tables, and the run's vars.
    dbt gives a Python model its own config only, in `config_dict`, which `dbt.config.get` reads when it is called.
#}
{% macro _run_context() %}
config_dict["afterimage"] = {{ dict(
    afterimage._log_context(model, this),
    selected_as=model.name,
    rejected=this.incorporate(path={'identifier': this.identifier ~ '_rejected'}) | string,
    erasures=afterimage._erasures_relation() | string,
    beginning_of_time=afterimage._var('beginning_of_time'),
    backfill_from=afterimage._var('backfill_from') | string if afterimage._var('backfill_from') else none,
    rebuild_changes=afterimage._var('rebuild_changes'),
    accept_gap=afterimage._var('accept_gap'),
    complete_load=afterimage._var('complete_load'),
    tables=afterimage._message_tables(model) if model.config.materialized == 'staging_log' else [],
    message_tables=afterimage._all_message_tables() if afterimage._var('complete_load') else [],
) }}
{% endmacro %}


{# What identifies a change log or decoded log and its run: fields of `RunContext`. #}
{% macro _log_context(node, relation) %}
    {{ return({
        'model': afterimage._progress_name(relation),
        'log': relation | string,
        'progress': afterimage._progress_relation() | string,
        'file_format': adapter.afterimage.table_format(),
        'settings': afterimage._settings_of(node),
        'upstream': afterimage._upstream_relations(node),
        'started_at': run_started_at.isoformat(),
    }) }}
{% endmacro %}


{# The names of what a change log reads: its staging view, what that reads, and so on down to tables. #}
{% macro _upstream_relations(node) %}
    {%- set names = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.sources or id in graph.nodes -%}
        {%- set upstream = graph.sources.get(id) or graph.nodes[id] -%}
        {%- do names.append(upstream.relation_name) -%}
        {%- if upstream.resource_type == 'model' and upstream.config.materialized == 'staging_view' -%}
            {%- do names.extend(afterimage._upstream_relations(upstream)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(names | unique | list) }}
{% endmacro %}
