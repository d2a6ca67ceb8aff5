{#
    What a run adds to a change-activity table.

    Counts are added up, so a batch must be counted once, wherever a run is killed. Hence the table itself says what it
    has counted: the greatest `recorded_at` and `rejects_recorded_at` of a table's rows, written by the very commit that
    counts. The progress table is written afterwards, so it could not be relied on.
#}
{% macro _change_activity_batch(target_relation) %}
    {%- set logs = afterimage._change_activity_logs(target_relation) -%}
    {%- if not logs -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set parts = [] -%}
    {%- for log in logs -%}
        {%- do parts.append("select 1 from " ~ log.changes ~ " where " ~ afterimage._is_uncounted_change(log)) -%}
        {%- do parts.append("select 1 from " ~ afterimage._rejected_relation(log.changes) ~ " where " ~ afterimage._is_uncounted_reject(log)) -%}
    {%- endfor -%}
    {%- set found = run_query("select count(*) from (" ~ parts | join(' union all ') ~ ") as uncounted").rows[0][0] | int -%}
    {%- if not found -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return({
        'path': 'incremental',
        'why': 'records of new batches only',
        'changes': found,
        'applied': afterimage._change_activity_applied('incremental'),
        'statement': afterimage._change_activity_merge(target_relation, logs),
    }) }}
{% endmacro %}


{# The progress row. Every log has batches of its own, so none of them can be named as the last one. #}
{% macro _change_activity_applied(path) %}
    {{ return({'recorded_at': none, 'change_seq': none, 'changed_at': none, 'path': path}) }}
{% endmacro %}


{# The logs that the model counts, each with what the table has counted of it. #}
{% macro _change_activity_logs(target_relation) %}
    {%- set counted = {} -%}
    {%- for row in run_query(
        "select table_name, cast(max(recorded_at) as string), cast(max(rejects_recorded_at) as string),"
        ~ " max(last_change_seq) from " ~ target_relation ~ " group by table_name"
    ).rows -%}
        {%- do counted.update({row[0]: {'recorded_at': row[1], 'rejects_recorded_at': row[2], 'change_seq': row[3]}}) -%}
    {%- endfor -%}
    {%- set logs = afterimage._all_change_logs() if config.get('counts_all_change_logs') else [] -%}
    {%- if not config.get('counts_all_change_logs') -%}
        {%- for reference in model.refs -%}
            {%- do logs.append(afterimage._counted_log(modules.re.sub('_changes$', '', reference.name), ref(reference.name))) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for log in logs -%}
        {%- do log.update({'counted': counted.get(log.table, {})}) -%}
    {%- endfor -%}
    {{ return(logs) }}
{% endmacro %}


{# Condition on a log: not counted yet. Rows of a full load are not changes; `in` skips files that hold nothing else. #}
{% macro _is_uncounted_change(log) %}
    {{- return("change_oper in ('I', 'U', 'D', 'T') and " ~ afterimage._recorded_after(log.counted.recorded_at)) -}}
{% endmacro %}


{# Condition on the rejected records of a log: not counted yet. #}
{% macro _is_uncounted_reject(log) %}
    {{- return(afterimage._recorded_after(log.counted.rejects_recorded_at)) -}}
{% endmacro %}


{# Condition on a row of the table: it counts a batch of its log after those that were counted when the table was queried. #}
{% macro _is_counted_after(counted) -%}
    {%- for name in ['recorded_at', 'rejects_recorded_at'] -%}
    {{ ' or ' if not loop.first }}{{ name }} {{ "> timestamp '" ~ counted[name] ~ "'" if counted.get(name) else 'is not null' }}
    {%- endfor -%}
{%- endmacro %}


{# One commit: the counts of new batches are added to those of their hour. #}
{% macro _change_activity_merge(target_relation, logs) -%}
{%- set sums = [
    'changes', 'inserts', 'updates', 'key_changes', 'deletes', 'truncates', 'late_changes', 'rejected', 'total_lag_seconds',
] -%}
{%- set maxima = ['last_change_seq', 'max_lag_seconds', 'recorded_at', 'rejects_recorded_at'] -%}
merge into {{ target_relation }} as target
using (
    with

    counted as (
        {{ afterimage._change_activity_rows(logs) | indent(8) }}
    ),

    -- another run may have counted the batch since this one queried the table
    published as (
        select count(*) as newer_hours
        from {{ target_relation }}
        where
            {%- for log in logs %}
            {{ 'or ' if not loop.first }}(table_name = {{ afterimage._text(log.table) }} and ({{ afterimage._is_counted_after(log.counted) }}))
            {%- endfor %}
        having count(*) > 0
    )

    select counted.*
    from counted
    left anti join published
        on true
) as source
    on
        target.table_name = source.table_name
        and target.activity_hour = source.activity_hour
when matched then
    update set
        {%- for name in sums %}
        target.{{ name }} = target.{{ name }} + source.{{ name }},
        {%- endfor %}
        {%- for name in maxima %}
        target.{{ name }} = greatest(target.{{ name }}, source.{{ name }}),
        {%- endfor %}
        target.first_change_seq = least(target.first_change_seq, source.first_change_seq),
        -- without any commit time there is no lag
        target.average_lag_seconds = if(
            coalesce(target.max_lag_seconds, source.max_lag_seconds) is null,
            null,
            (target.total_lag_seconds + source.total_lag_seconds) / nullif(target.changes + source.changes, 0)
        )
when not matched then insert *
{%- endmacro %}
