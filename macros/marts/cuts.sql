{#
    The body of the model `afterimage_cuts`: one row per run and replication task with its cut, the greatest change_seq up to
    which all tables of the task are complete in their histories. A run adds a row only if the cut has moved.

    A table belongs to a task by the setting `task`, and counts if it has a history. dbt knows references at parse time only,
    when the graph is empty: the plugin adds these histories to the lineage of the model, so that it runs after them.

    Arguments:
      transactions  {task: relation with the landed messages of Debezium's transaction topic}: they prove the cut. That of
                    other tasks follows from `landing_delay`.
#}
{% macro cuts(transactions={}) %}
    {{- config(materialized='cuts') -}}
    {%- if model.name != 'afterimage_cuts' -%}
        {{ exceptions.raise_compiler_error(
            "`cuts` of " ~ model.name ~ ": the macros that read cuts look for a model named afterimage_cuts. Fix: rename the file to afterimage_cuts.sql."
        ) }}
    {%- endif -%}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set tasks = afterimage._tasks_with_cuts(transactions) -%}
    {%- set before = afterimage._last_cuts() -%}
    {%- set rows = [] -%}
    {%- for task, tables in tasks.items() -%}
        {%- set last = before.get(task, {}) -%}
        {%- set cut = none -%}
        {%- if afterimage._are_applied(task, tables) -%}
            {%- if task in transactions -%}
                {%- set cut = afterimage._cut_by_transactions(tables, transactions[task], last) -%}
            {%- else -%}
                {%- set cut = afterimage._cut_by_delay(task, tables, last) -%}
            {%- endif -%}
        {%- endif -%}
        {%- do rows.append(dict(cut, task=task)) if cut -%}
    {%- endfor -%}
    {{ return(afterimage._cut_rows(rows)) }}
{% endmacro %}


{# The tables of each task that has cuts: {task: [{table, node, changes, history, settings}]}. #}
{% macro _tasks_with_cuts(transactions) %}
    {%- set tasks = {} -%}
    {%- for id in model.depends_on.nodes | sort if id in graph.nodes and graph.nodes[id].config.materialized == 'scd2_history' -%}
        {%- set settings = afterimage._settings_of(graph.nodes[id]) -%}
        {%- set log = afterimage._upstream_of_kind(graph.nodes[id], 'change_log') -%}
        {%- do tasks.setdefault(settings.task, []).append({
            'table': modules.re.sub('_changes$', '', log.name),
            'node': log,
            'changes': afterimage._relation_of(log),
            'history': afterimage._relation_of(graph.nodes[id]),
            'settings': settings,
        }) if settings.task and log -%}
    {%- endfor -%}
    {%- set found = {} -%}
    {%- for task, tables in tasks.items() -%}
        {%- set delayed = tables | selectattr('settings.landing_delay') | list -%}
        {%- if task in transactions or delayed | length == tables | length -%}
            {%- do found.update({task: tables}) -%}
        {%- elif delayed -%}
            {{ exceptions.raise_compiler_error(
                "`cuts` of " ~ model.name ~ ": of the task '" ~ task ~ "', " ~ delayed | map(attribute='settings.source_table') | join(', ')
                ~ " has the setting `landing_delay`, and "
                ~ tables | rejectattr('settings.landing_delay') | map(attribute='settings.source_table') | join(', ')
                ~ " lacks it. A cut is of all tables of a task. Fix: set `landing_delay` on the source, for all its tables."
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- for task in transactions if task not in tasks -%}
        {{ exceptions.raise_compiler_error(
            "`cuts` of " ~ model.name ~ ": `transactions` names the task '" ~ task ~ "', and no table with a history has it. Allowed: "
            ~ (tasks | sort | join(', ') or 'none, since no table has the setting `task`') ~ ". Fix: correct the name, or set `task` on the source."
        ) }}
    {%- endfor -%}
    {%- if not found -%}
        {{ exceptions.raise_compiler_error(
            "`cuts` of " ~ model.name ~ ": no task has cuts. Fix: set `task` and `landing_delay` on a source, for example `landing_delay: 10"
            ~ " minutes`; or name Debezium's transaction topic: cuts(transactions={'shop': source('raw', 'transactions')})."
        ) }}
    {%- endif -%}
    {{ return(found) }}
{% endmacro %}


{# The last cut of each task: {task: {change_seq, complete_until, transaction_id}}. #}
{% macro _last_cuts() %}
    {%- set last = {} -%}
    {%- if load_cached_relation(this) is not none and not should_full_refresh() -%}
        {%- for row in run_query(
            "select last.task, last.change_seq, cast(last.complete_until as string), last.transaction_id from ("
            ~ "select max_by(struct(*), cut_at) as last from " ~ this ~ " group by task) as cuts"
        ).rows -%}
            {%- do last.update({row[0]: {'change_seq': row[1], 'complete_until': row[2], 'transaction_id': row[3]}}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(last) }}
{% endmacro %}


{# Whether each history of a task is built and has applied the last batch of its log. #}
{% macro _are_applied(task, tables) %}
    {%- for table in tables -%}
        {%- set is_applied = load_relation(table.history) is not none -%}
        {%- if is_applied -%}
            {%- set progress = afterimage._progress_by(table.history, [table.changes]) -%}
            {%- set published = progress[afterimage._progress_name(table.changes)].recorded_at -%}
            {%- set applied = progress[afterimage._progress_name(table.history)].recorded_at -%}
            {%- set is_applied = published is none or (applied is not none and applied >= published) -%}
        {%- endif -%}
        {%- if not is_applied -%}
            {%- do afterimage._keep_cut(task, table.history.identifier ~ " has not applied the last batch of " ~ table.changes.identifier) -%}
            {{ return(false) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(true) }}
{% endmacro %}


{# Says why a task has no new cut. #}
{% macro _keep_cut(task, why) %}
    {%- do log(model.name ~ ": the cut of the task '" ~ task ~ "' stays where it is: " ~ why, info=true) -%}
{% endmacro %}


{#
    The cut by the setting `landing_delay`: before a certain time, all changes of all tables had landed when their logs were
    read. None if it has not moved.
#}
{% macro _cut_by_delay(task, tables, last) %}
    {%- set times = {} -%}
    {%- for table in tables -%}
        {%- set read_at = afterimage._read_up_to(table.node) -%}
        {%- if read_at is none -%}
            {%- do afterimage._keep_cut(
                task, "it is not known up to when " ~ table.changes.identifier ~ " has read its raw table. Run it in the same dbt command"
            ) -%}
            {{ return(none) }}
        {%- endif -%}
        {%- do times.update({table.table: adapter.afterimage.complete_until(read_at, table.settings.landing_delay)}) -%}
    {%- endfor -%}
    {%- set until = times.values() | min -%}
    {#- a table that was added, or a longer delay: what is before the last cut need not be complete -#}
    {%- set is_further = last.get('complete_until') and until >= last.complete_until -%}
    {%- set after = last.change_seq if is_further else '' -%}
    {%- set parts = [] -%}
    {%- for table in tables -%}
        {%- do parts.append(
            "select change_seq from " ~ table.changes ~ " where change_seq > " ~ afterimage._text(after) ~ " and changed_at < "
            ~ adapter.afterimage.timestamp_as_text(until, 'change_oper')
        ) -%}
    {%- endfor -%}
    {%- set found = run_query("select max(change_seq) from (" ~ parts | join(' union all ') ~ ") as changes").rows[0][0] -%}
    {%- if found is none and is_further -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set slowest = times | dictsort(by='value') | first | first -%}
    {{ return({
        'change_seq': found or adapter.afterimage.first_position(tables[0].settings),
        'complete_until': until,
        'proof': 'landing_delay',
        'held_back_by': slowest if times.values() | unique | list | length > 1 else none,
    }) }}
{% endmacro %}


{# What had landed by this time, a change log has read, and so have the decoded logs that it reads; none if that is not known. #}
{% macro _read_up_to(node) %}
    {%- set times = [] -%}
    {%- for log in [node] + afterimage._decoded_logs(node) -%}
        {%- do times.append(adapter.afterimage.read_up_to(afterimage._log_context(log, afterimage._relation_of(log)))) -%}
    {%- endfor -%}
    {{ return(none if none in times else times | min) }}
{% endmacro %}


{# The decoded logs that a change log reads, through staging views. #}
{% macro _decoded_logs(node) %}
    {%- set logs = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes -%}
        {%- if graph.nodes[id].config.materialized == 'staging_log' -%}
            {%- do logs.append(graph.nodes[id]) -%}
        {%- elif graph.nodes[id].config.materialized == 'staging_view' -%}
            {%- do logs.extend(afterimage._decoded_logs(graph.nodes[id])) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(logs) }}
{% endmacro %}


{# The new rows, as a statement. #}
{% macro _cut_rows(cuts) -%}
select
    cast(task as string) as task,
    cast({{ afterimage._text(run_started_at.strftime('%Y-%m-%d %H:%M:%S.%f')) }} as timestamp) as cut_at,
    cast(change_seq as string) as change_seq,
    cast(complete_until as timestamp) as complete_until,
    cast(proof as string) as proof,
    cast(held_back_by as string) as held_back_by,
    cast(transaction_id as string) as transaction_id
from values
    {%- for cut in cuts or [{}] %}
    (
        {%- for name in ['task', 'change_seq', 'complete_until', 'proof', 'held_back_by', 'transaction_id'] -%}
        {{ afterimage._text(cut[name]) if cut.get(name) is not none else 'null' }}{{ ', ' if not loop.last }}
        {%- endfor -%}
    ){{ ',' if not loop.last }}
    {%- endfor %}
    as cuts (task, change_seq, complete_until, proof, held_back_by, transaction_id)
where task is not null
{%- endmacro %}
