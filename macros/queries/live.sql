{#
    A subquery of a history, or of a current table, as a run would leave it now: its rows, and those of what lies in the raw table
    and no run has merged.

        select * from {{ live(ref('orders_current')) }}

    Each call does what the models of the change log and the history do, except for writing.

    Arguments:
      relation  ref('<table>_history') or ref('<table>_current')
#}
{% macro live(relation) %}
    {%- if not execute -%}
        {{ return('(select 1 as parsed)') }}
    {%- endif -%}
    {%- do afterimage._check_relation('live', 'relation', relation) -%}
    {%- set node = afterimage._node_of_relation(relation) -%}
    {%- set history_node = afterimage._upstream_of_kind(node, 'scd2_history') if node.config.materialized == 'current_state' else node -%}
    {%- set log_node = afterimage._upstream_of_kind(history_node, 'change_log') -%}
    {%- if history_node.config.materialized != 'scd2_history' or log_node is none -%}
        {%- do afterimage._wrong_argument(
            'live', relation, "the model is neither a history of a change log nor its current table. Allowed: ref('<table>_history'),"
            ~ " ref('<table>_current') if that is a table. Fix: name one of them; a current view is the history `where is_current`."
        ) -%}
    {%- endif -%}
    {%- set history = load_relation(afterimage._relation_of(history_node)) -%}
    {%- set log = load_relation(afterimage._relation_of(log_node)) -%}
    {%- if history is none or log is none -%}
        {%- do afterimage._wrong_argument(
            'live', relation, (afterimage._relation_of(log_node) if log is none else afterimage._relation_of(history_node)) ~ " does not exist yet."
            ~ " Fix: run dbt build first."
        ) -%}
    {%- endif -%}
    {%- set found = afterimage._live_history(history_node, history, log_node, log) -%}
    {%- if node.config.materialized == 'scd2_history' -%}
        {{ return('(\n    select *\n    from ' ~ found.view ~ '\n)') }}
    {%- endif -%}
    {%- set settings = afterimage._settings_of(node) -%}
    {%- set columns = afterimage._current_columns(history, settings, found.columns) -%}
    {{ return('(\n' ~ afterimage._current_rows(found.view, settings, columns) ~ '\n)') }}
{% endmacro %}


{# A view of the history with `live_state`: {view, columns}. #}
{% macro _live_history(history_node, history, log_node, log) %}
    {%- set context = dict(
        afterimage._log_context(log_node, log),
        selected_as=log_node.name,
        rejected=afterimage._rejected_relation(log) | string,
        erasures=afterimage._erasures_relation() | string,
        beginning_of_time=afterimage._var('beginning_of_time'),
        accept_gap=afterimage._var('accept_gap'),
    ) -%}
    {%- set progress = afterimage._progress_by(history, [log]) -%}
    {%- set state = adapter.afterimage.current_version(history) -%}
    {%- set applied = progress[afterimage._progress_name(history)] -%}
    {%- if adapter.afterimage.contradicts_progress(
        history, state, applied, log, progress[afterimage._progress_name(log)].recorded_at
    ) or afterimage._must_rebuild('history', [log], history, progress) -%}
        {#- nothing of the log counts as applied, as in a run, which rebuilds the history -#}
        {%- set applied = {'recorded_at': none, 'change_seq': none, 'changed_at': none, 'unknown_columns': none} -%}
    {%- endif -%}
    {{ return(adapter.afterimage.live_history(
        context, graph.nodes[log_node.depends_on.nodes[0]].relation_name, history, state,
        afterimage._history_table(history_node, log), applied
    )) }}
{% endmacro %}
