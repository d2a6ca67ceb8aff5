{#
    Stops where the sequence of a table has restarted. `_Change-Sequence` counts within a table for one policy: a new
    policy may restart it, and its changes would sort before the old ones, or lie beyond the look-back and never be read.

    Two signs: in the extract a later policy has sequences that are not greater than those of the one before it; or a
    change is newer than everything in the change log, but its position lies further back than the look-back, or than the
    middle of what the log has read: a log may be shorter than the look-back.
#}
{% macro _check_openedge_sequences(tracked, relation, settings) %}
    {%- if not afterimage._raw_columns(relation) -%}
        {{ return('') }}
    {%- endif -%}
    {%- set own = tracked.own -%}
    {%- set done = afterimage._openedge_progress() -%}
    {%- set is_newer = 'false' -%}
    {%- if done and done.change_seq and done.changed_at -%}
        {%- set last = done.change_seq | int -%}
        {%- set is_newer = "_sequence < " ~ [last - settings.look_back, last // 2] | max
            ~ " and _time_stamp > timestamp '" ~ done.changed_at ~ "'" -%}
    {%- endif -%}
    {%- set statement -%}
        select
            coalesce(policy_id, 'without an id') as policy_id,
            min(_sequence) as first_sequence,
            max(_sequence) as last_sequence,
            min(if({{ is_newer }}, _sequence, null)) as sequence_behind
        from (
            select
                {{ afterimage._column_as_text(own, 'policy_id') }} as policy_id,
                {{ tracked.sequence }} as _sequence,
                try_cast({{ afterimage._quoted(own.time_stamp.name) }} as timestamp) as _time_stamp
            from {{ relation }}
            {{- tracked.where }}
        ) as tracking_rows
        where _sequence > 0
        group by 1
        order by min(_time_stamp), 2
    {%- endset -%}
    {%- set policies = run_query(statement).rows -%}
    {%- set fix = " Nothing was written. Fix: name the new policy in `other_policies` in the table's `meta.afterimage`; declare"
        ~ " the extract of the new policy's changes as a source table of its own, with the old policy in `other_policies` and a"
        ~ " `base` that was loaded when the new one began; and give it its own staging model, change log and marts."
        ~ " docs/openedge.md shows it." -%}
    {%- for policy in policies -%}
        {%- if policy[3] is not none -%}
            {{ exceptions.raise_compiler_error(
                "Source table " ~ settings.source_table ~ ": the change sequence has restarted. Policy " ~ policy[0]
                ~ " has a change at " ~ policy[3] ~ " that is newer than all that the change log holds, and the log has read"
                ~ " up to " ~ (done.change_seq | int) ~ " (look_back: " ~ settings.look_back ~ ")." ~ fix
            ) }}
        {%- elif not loop.first and policy[1] <= loop.previtem[2] -%}
            {{ exceptions.raise_compiler_error(
                "Source table " ~ settings.source_table ~ ": the change sequence has restarted. It had come to "
                ~ loop.previtem[2] ~ " under policy " ~ loop.previtem[0] ~ ", and under the later policy " ~ policy[0]
                ~ " it starts at " ~ policy[1] ~ "." ~ fix
            ) }}
        {%- endif -%}
    {%- endfor -%}
{% endmacro %}


{# What the change log that reads the running staging model has recorded; none before its first run. #}
{% macro _openedge_progress() %}
    {%- for node in graph.nodes.values() -%}
        {%- if node.config.materialized == 'change_log' and model.unique_id in node.depends_on.nodes -%}
            {#- `dbt compile` may come before the first run #}
            {{ return(afterimage._read_progress(afterimage._relation_of(node)) if load_relation(afterimage._progress_relation()) else none) }}
        {%- endif -%}
    {%- endfor -%}
    {{ return(none) }}
{% endmacro %}
