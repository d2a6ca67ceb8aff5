{#
    What the materializations of history, current state, field changes and change activity share: a table that follows
    change logs.

    First run, --full-refresh, and when the input was rebuilt: `create or replace table` with all rows.
    Otherwise the macro of the mart's kind plans a batch of what is new, or nothing; then the progress row is written. A
    run that is killed in between applies its batch again, which changes nothing. A batch has one of three, or only what is
    applied by it:
    - `rows` to append to a table whose last batch was `after`
    - `source`, rows that come and go, told by `identity`, where the table meets the condition `where`; `after` is the state
      of the table before the run read anything, so what another run writes from there on is noticed; `kept` are views
      that `source` reads, if any, see `adapter.afterimage.checkpoint`
    - a `statement`
    Why not dbt-spark's incremental: its MERGE has neither conditions nor deletes, and its source is a temporary
    view that is evaluated more than once.
#}
{% macro _materialize_mart(mart) %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set inputs = afterimage._mart_inputs() -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing is not none and existing.is_view -%}
        {%- do adapter.drop_relation(existing) -%}
        {%- set existing = none -%}
    {%- endif -%}
    {%- set is_first = existing is none or should_full_refresh() -%}
    {#- counts of change activity say themselves what they have counted -#}
    {%- set noted = none if is_first or mart == 'change_activity' else afterimage._progress_by(target_relation, inputs) -%}
    {%- set applied_before = noted[afterimage._progress_name(target_relation)].recorded_at if noted else none -%}
    {%- if noted and (
        afterimage._has_applied_all(mart, inputs, target_relation, noted) or afterimage._is_empty_still(mart, inputs, target_relation, noted)
    ) -%}
        {%- do afterimage._check_mart(target_relation, mart, inputs) -%}
        {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
    {%- elif is_first or afterimage._must_rebuild(mart, inputs, target_relation, noted) -%}
        {%- set whole = afterimage._whole_mart(mart, inputs) -%}
        {%- if mart == 'history' -%}
            {%- do afterimage._reset_progress_from(target_relation) -%}
        {%- endif -%}
        {#- one commit on both formats: readers see the old rows or the new ones -#}
        {%- do adapter.afterimage.create_table(
            target_relation, whole.source, afterimage._column_descriptions(), config.get('partition_by') or [],
            afterimage._table_properties(mart), whole.get('kept', [])
        ) -%}
        {%- call noop_statement('main', 'OK, built') -%}{{ sql }}{%- endcall -%}
        {%- do afterimage._write_progress(target_relation, whole.applied, none) -%}
    {%- else -%}
        {%- do afterimage._check_mart(target_relation, mart, inputs) -%}
        {%- set batch = afterimage._mart_batch(target_relation, mart, inputs, noted) -%}
        {%- if batch is none -%}
            {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
        {%- elif not (batch.rows or batch.source or batch.statement) -%}
            {%- call noop_statement('main', 'OK, nothing to write') -%}{%- endcall -%}
            {%- do afterimage._write_progress(target_relation, batch.applied, applied_before) -%}
        {%- else -%}
            {%- do log(model.name ~ ": " ~ batch.changes ~ " changed rows, " ~ batch.path ~ " path: " ~ batch.why, info=true) -%}
            {%- if batch.rows -%}
                {%- do adapter.afterimage.append(target_relation, batch.rows, batch.after) -%}
                {%- call noop_statement('main', 'OK, appended') -%}{{ batch.rows }}{%- endcall -%}
            {%- elif batch.source -%}
                {%- do adapter.afterimage.publish(
                    target_relation, batch.source, batch.identity, batch.where, batch.after, batch.get('kept', [])
                ) -%}
                {%- call noop_statement('main', 'OK, published') -%}{{ sql if mart == 'history' else batch.source }}{%- endcall -%}
            {%- else -%}
                {%- call statement('main') -%}
                    {{ batch.statement }}
                {%- endcall -%}
            {%- endif -%}
            {%- do afterimage._write_progress(target_relation, batch.applied, applied_before) -%}
            {%- do afterimage._compact_after_run(target_relation, mart) -%}
        {%- endif -%}
    {%- endif -%}

    {%- do persist_docs(target_relation, model) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmacro %}


{#
    Whether a mart has applied the last batch that its input noted: then no table but that of progress is read. An input
    that notes nothing, a view for example, is asked itself.
#}
{% macro _has_applied_all(mart, inputs, target_relation, noted) %}
    {%- set input = inputs[1] if mart == 'field_changes' and inputs | length > 1 else inputs[0] -%}
    {%- set applied = noted[afterimage._progress_name(target_relation)].recorded_at -%}
    {%- set published = noted[afterimage._progress_name(input)].recorded_at -%}
    {{ return(applied is not none and published is not none and applied >= published) }}
{% endmacro %}


{# Whether no batch is noted of a mart that is made from a history or a log: it has had none, or it was forgotten. #}
{% macro _has_no_progress(mart, target_relation, noted) %}
    {{ return(mart != 'change_activity' and noted[afterimage._progress_name(target_relation)].recorded_at is none) }}
{% endmacro %}


{# Whether a mart and its input have never had a row: of such a mart no batch is noted, as if it were to be built again. #}
{% macro _is_empty_still(mart, inputs, target_relation, noted) %}
    {%- if not afterimage._has_no_progress(mart, target_relation, noted) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set statement -%}
        (select 1 from {{ inputs[0] }} limit 1) union all (select 1 from {{ target_relation }} limit 1)
    {%- endset -%}
    {{ return(run_query(statement).rows | length == 0) }}
{% endmacro %}


{#
    Whether a mart's input holds nothing any more of what the mart has applied: `rebuild_changes` rebuilt the log, or
    somebody dropped it. Added to the mart's rows, its rows would stand there twice. Or its history was rebuilt, and what
    the mart had applied was forgotten.
#}
{% macro _must_rebuild(mart, inputs, target_relation, noted) %}
    {%- if afterimage._has_no_progress(mart, target_relation, noted) -%}
        {{ return(true) }}
    {%- endif -%}
    {%- if noted and noted[afterimage._progress_name(inputs[0])].is_continued -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set applied = {} -%}
    {%- if mart == 'change_activity' -%}
        {%- for log in afterimage._change_activity_logs(target_relation) -%}
            {%- do applied.update({log.changes | string: log.counted.recorded_at}) -%}
        {%- endfor -%}
    {%- else -%}
        {%- do applied.update({inputs[0] | string: noted[afterimage._progress_name(target_relation)].recorded_at}) -%}
    {%- endif -%}
    {%- set left = [] -%}
    {%- for input, recorded_at in applied.items() if recorded_at -%}
        {%- do left.append(
            "select count(*) from (select 1 from " ~ input ~ " where not (" ~ afterimage._recorded_after(recorded_at) ~ ") limit 1) as left_rows"
        ) -%}
    {%- endfor -%}
    {%- if not left -%}
        {{ return(false) }}
    {%- endif -%}
    {{ return(0 in run_query(left | join(' union all ')).columns[0].values() | map('int') | list) }}
{% endmacro %}


{#
    All rows of a mart that is rebuilt, and what it will have applied. What it applies is read before the build: what is
    appended meanwhile comes next time.
#}
{% macro _whole_mart(mart, inputs) %}
    {%- if mart == 'history' -%}
        {{ return(afterimage._whole_history(inputs[0])) }}
    {%- elif mart == 'change_activity' -%}
        {%- set applied = afterimage._change_activity_applied('rebuild') -%}
    {%- elif mart == 'field_changes' and inputs | length > 1 -%}
        {#- old values come from history: what it has applied #}
        {%- set noted = afterimage._read_progress(inputs[1]) -%}
        {%- set applied = {'recorded_at': noted.recorded_at, 'change_seq': noted.change_seq, 'changed_at': noted.changed_at} -%}
    {%- else -%}
        {%- set newest = run_query("select cast(max(recorded_at) as string) from " ~ inputs[0]).rows[0][0] -%}
        {%- set applied = {'recorded_at': newest, 'change_seq': none, 'changed_at': none} -%}
    {%- endif -%}
    {%- do applied.update({'path': 'rebuild'}) -%}
    {{ return({'source': sql, 'applied': applied}) }}
{% endmacro %}


{# The relations that the model refers to, in the order in which it names them. #}
{% macro _mart_inputs() %}
    {%- set inputs = [] -%}
    {%- for reference in model.refs -%}
        {%- do inputs.append(ref(reference.name)) -%}
    {%- endfor -%}
    {{ return(inputs) }}
{% endmacro %}


{# What is new for an existing mart; none when nothing is. #}
{% macro _mart_batch(target_relation, mart, inputs, noted) %}
    {%- if mart == 'history' -%}
        {{ return(afterimage._history_batch(target_relation, inputs[0], noted)) }}
    {%- elif mart == 'current' -%}
        {{ return(afterimage._current_batch(target_relation, inputs[0], noted)) }}
    {%- elif mart == 'field_changes' -%}
        {{ return(afterimage._field_changes_batch(target_relation, inputs[0], inputs[1] if inputs | length > 1 else none, noted)) }}
    {%- endif -%}
    {{ return(afterimage._change_activity_batch(target_relation)) }}
{% endmacro %}


{#
    The one place for settings of a table format; a model's config `tblproperties` overrides and adds to them.
    Merge-on-read: an update writes the row and a mark, not the file again. Iceberg's version 3 has better marks, but not all
    readers know it, and there is no way back.
#}
{% macro _table_properties(mart) %}
    {%- if adapter.afterimage.table_format() == 'iceberg' -%}
        {%- set properties = {
            'format-version': '2',
            'write.merge.mode': 'merge-on-read',
            'write.update.mode': 'merge-on-read',
            'write.delete.mode': 'merge-on-read',
        } -%}
    {%- else -%}
        {%- set properties = {'delta.enableDeletionVectors': 'true'} -%}
    {%- endif -%}
    {%- for name, value in (config.get('tblproperties') or {}).items() -%}
        {%- do properties.update({name: value | string}) -%}
    {%- endfor -%}
    {%- if model.description -%}
        {%- do properties.update({'comment': model.description}) -%}
    {%- endif -%}
    {%- do properties.update(afterimage._mart_properties(mart)) -%}
    {{ return(properties) }}
{% endmacro %}


{# Column name -> description, of the model that runs. #}
{% macro _column_descriptions() %}
    {%- set descriptions = {} -%}
    {%- for name, column in model.columns.items() if column.description -%}
        {%- do descriptions.update({name: column.description}) -%}
    {%- endfor -%}
    {{ return(descriptions) }}
{% endmacro %}


{# The materializations of marts. #}
{% macro _mart_materializations() %}
    {{ return(['scd2_history', 'current_state', 'field_changes', 'change_activity']) }}
{% endmacro %}
