{#
    What the materializations of history, current state, field changes and change activity share: a table maintained from
    change logs.

    First run, --full-refresh, when the input was rebuilt, and when the table contradicts its progress (restored to an earlier
    version, for example): `create or replace table` with all rows.
    Otherwise the macro of the mart's kind plans a batch of the new rows, if any; then the progress row is written. If a run
    is killed in between, the next run applies the batch again, which changes nothing. A batch has one of these three, or
    none if only its progress is to be recorded:
    - `rows` to append to a table whose last batch was `after`
    - `source`: rows to write and delete, identified by `identity`, among the rows of the table that meet the condition
      `where`; `after` is the state of the table before the run read anything, so that a concurrent write is detected;
      `kept` are views that `source` reads, if any, see `adapter.afterimage.checkpoint`
    - a `statement`
    Why not dbt-spark's incremental: its MERGE has neither conditions nor deletes, and its source is a temporary
    view that is evaluated more than once.
#}
{% macro _materialize_mart(mart) %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set inputs = afterimage._mart_inputs() -%}
    {%- set feed = afterimage._feed_of(target_relation) if mart == 'history' and config.get('feed') else none -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing is not none and existing.is_view -%}
        {%- do adapter.drop_relation(existing) -%}
        {%- set existing = none -%}
    {%- endif -%}
    {%- set is_first = existing is none or should_full_refresh() -%}
    {#- change activity records in its own rows what it has counted -#}
    {%- set progress = none if is_first or mart == 'change_activity' else afterimage._progress_by(target_relation, inputs) -%}
    {%- set applied_before = progress[afterimage._progress_name(target_relation)].recorded_at if progress else none -%}
    {%- set source = afterimage._source_of_batches(mart, inputs) -%}
    {%- set state = none if is_first else adapter.afterimage.current_version(target_relation) -%}
    {%- set is_contradicted = progress is not none and adapter.afterimage.contradicts_progress(
        target_relation, state, progress[afterimage._progress_name(target_relation)], source,
        progress[afterimage._progress_name(source)].recorded_at
    ) -%}
    {%- if progress and not is_contradicted and (
        afterimage._has_applied_all(mart, inputs, target_relation, progress) or afterimage._is_empty_still(mart, inputs, target_relation, progress)
    ) -%}
        {%- do afterimage._check_mart(target_relation, mart, inputs) -%}
        {%- do afterimage._update_feed(target_relation) if feed -%}
        {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
    {%- elif is_first or is_contradicted or afterimage._must_rebuild(mart, inputs, target_relation, progress) -%}
        {%- set whole = afterimage._whole_mart(mart, inputs) -%}
        {%- if mart == 'history' or is_contradicted -%}
            {%- do afterimage._reset_progress_from(target_relation) -%}
        {%- endif -%}
        {#- one commit on both formats: readers see the old rows or the new ones -#}
        {%- do adapter.afterimage.create_table(
            target_relation, whole.source, afterimage._column_descriptions(), config.get('partition_by') or [],
            afterimage._table_properties(mart), whole.get('kept', [])
        ) -%}
        {%- if mart == 'history' and existing is not none -%}
            {#- another run may have built a mart from the replaced rows meanwhile -#}
            {%- do afterimage._reset_progress_from(target_relation) -%}
        {%- endif -%}
        {%- do afterimage._update_feed(target_relation) if feed -%}
        {%- call noop_statement('main', 'OK, built') -%}{{ sql }}{%- endcall -%}
        {%- do afterimage._record(target_relation, mart, whole.applied, none) -%}
    {%- else -%}
        {%- if afterimage._check_mart(target_relation, mart, inputs) -%}
            {%- set state = adapter.afterimage.current_version(target_relation) -%}
        {%- endif -%}
        {%- set batch = afterimage._mart_batch(target_relation, mart, inputs, progress, state) -%}
        {%- if batch is none -%}
            {%- do afterimage._update_feed(target_relation) if feed -%}
            {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
        {%- elif not (batch.rows or batch.source or batch.statement) -%}
            {%- call noop_statement('main', 'OK, nothing to write') -%}{%- endcall -%}
            {%- do afterimage._record(target_relation, mart, batch.applied, applied_before) -%}
        {%- else -%}
            {%- set counted = batch.changes ~ " changed rows, " if batch.changes is not none else "" -%}
            {%- do log(model.name ~ ": " ~ counted ~ batch.path ~ " path: " ~ batch.why, info=true) -%}
            {%- if batch.rows -%}
                {%- do adapter.afterimage.append(target_relation, batch.rows, batch.after, batch.get('base_version')) -%}
                {%- call noop_statement('main', 'OK, appended') -%}{{ batch.rows }}{%- endcall -%}
            {%- elif batch.source -%}
                {%- do adapter.afterimage.publish(
                    target_relation, batch.source, batch.identity, batch.where, batch.after, batch.get('kept', []), batch.get('counts'), feed
                ) -%}
                {%- call noop_statement('main', 'OK, published') -%}{{ sql if mart == 'history' else batch.source }}{%- endcall -%}
            {%- else -%}
                {%- call statement('main') -%}
                    {{ batch.statement }}
                {%- endcall -%}
            {%- endif -%}
            {%- do afterimage._record(target_relation, mart, batch.applied, applied_before) -%}
            {%- do afterimage._compact_at_end(target_relation, mart) -%}
            {%- do afterimage._compact_at_end(afterimage._feed_relation(target_relation), mart) if feed -%}
        {%- endif -%}
    {%- endif -%}

    {%- do afterimage._persist_descriptions(target_relation) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation] + ([afterimage._feed_relation(target_relation)] if feed else [])}) }}
{% endmacro %}


{# Records what has just been published. Of a history at once: one that is ahead of its progress is rebuilt. #}
{% macro _record(target_relation, mart, applied, after) %}
    {%- do afterimage._write_progress(target_relation, applied, after) -%}
    {%- do adapter.afterimage.write_pending_progress() if mart == 'history' -%}
{% endmacro %}


{#
    True if a mart has applied the last batch in its input's progress: then only the progress table is read. An input without
    progress, such as a view, is queried.
#}
{% macro _has_applied_all(mart, inputs, target_relation, progress) %}
    {%- set input = afterimage._source_of_batches(mart, inputs) -%}
    {%- set applied = progress[afterimage._progress_name(target_relation)].recorded_at -%}
    {%- set published = progress[afterimage._progress_name(input)].recorded_at -%}
    {{ return(applied is not none and published is not none and applied >= published) }}
{% endmacro %}


{# The input whose batches a mart applies: of field changes between versions, the history. #}
{% macro _source_of_batches(mart, inputs) %}
    {{ return(inputs[1] if mart == 'field_changes' and inputs | length > 1 else inputs[0]) }}
{% endmacro %}


{# True if a mart of a history or a log has no progress: it has applied no batch yet, or its progress was reset. #}
{% macro _has_no_progress(mart, target_relation, progress) %}
    {{ return(mart != 'change_activity' and progress[afterimage._progress_name(target_relation)].recorded_at is none) }}
{% endmacro %}


{# True if a mart and its input have never had a row: such a mart has no progress, but needs no rebuild. #}
{% macro _is_empty_still(mart, inputs, target_relation, progress) %}
    {%- if not afterimage._has_no_progress(mart, target_relation, progress) -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set statement -%}
        (select 1 from {{ inputs[0] }} limit 1) union all (select 1 from {{ target_relation }} limit 1)
    {%- endset -%}
    {{ return(run_query(statement).rows | length == 0) }}
{% endmacro %}


{#
    True if none of the input rows this mart has applied still exist (`rebuild_changes` rebuilt the log, or it was dropped:
    adding its rows would duplicate those of the mart), or if the mart's progress was reset because its history was rebuilt.
#}
{% macro _must_rebuild(mart, inputs, target_relation, progress) %}
    {%- if afterimage._has_no_progress(mart, target_relation, progress) -%}
        {{ return(true) }}
    {%- endif -%}
    {%- if progress and progress[afterimage._progress_name(inputs[0])].is_continued -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set applied = {} -%}
    {%- if mart == 'change_activity' -%}
        {%- for log in afterimage._change_activity_logs(target_relation) -%}
            {%- do applied.update({log.changes | string: log.counted.recorded_at}) -%}
        {%- endfor -%}
    {%- else -%}
        {%- do applied.update({inputs[0] | string: progress[afterimage._progress_name(target_relation)].recorded_at}) -%}
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
    All rows of a mart that is rebuilt, and the progress to record, read before the build. Rows that another run appends meanwhile are
    left to the next run by history; other marts may include them, and the next run finds them again and writes nothing.
#}
{% macro _whole_mart(mart, inputs) %}
    {%- if mart == 'history' -%}
        {{ return(afterimage._whole_history(inputs[0])) }}
    {%- elif mart == 'change_activity' -%}
        {%- set applied = afterimage._change_activity_applied('rebuild') -%}
    {%- elif mart == 'field_changes' and inputs | length > 1 -%}
        {#- old values come from history: what it has applied #}
        {%- set progress = afterimage._read_progress(inputs[1]) -%}
        {%- set applied = {'recorded_at': progress.recorded_at, 'change_seq': progress.change_seq, 'changed_at': progress.changed_at} -%}
    {%- else -%}
        {%- set newest = run_query("select cast(max(recorded_at) as string) from " ~ inputs[0]).rows[0][0] -%}
        {%- set applied = {'recorded_at': newest, 'change_seq': none, 'changed_at': none} -%}
    {%- endif -%}
    {%- do applied.update({'path': 'rebuild'}) -%}
    {{ return({'source': sql, 'applied': applied}) }}
{% endmacro %}


{#
    True if a mart, whose version is `state`, and its input are as their last publications left them: then nothing was written to
    either of them without progress, by a run that was killed for example.
#}
{% macro _is_as_published(target_relation, input, progress, state) %}
    {%- set published = progress[afterimage._progress_name(input)] -%}
    {{ return(
        state is not none and state == progress[afterimage._progress_name(target_relation)].table_version
        and published.batches and adapter.afterimage.current_version(input) == published.table_version
    ) }}
{% endmacro %}


{# The relations that the model refers to, in the order in which it names them. #}
{% macro _mart_inputs() %}
    {%- set inputs = [] -%}
    {%- for reference in model.refs -%}
        {%- do inputs.append(ref(reference.name)) -%}
    {%- endfor -%}
    {{ return(inputs) }}
{% endmacro %}


{# The batch of new rows for an existing mart; none if there are none. #}
{% macro _mart_batch(target_relation, mart, inputs, progress, state) %}
    {%- if mart == 'history' -%}
        {{ return(afterimage._history_batch(target_relation, inputs[0], progress, state)) }}
    {%- elif mart == 'current' -%}
        {{ return(afterimage._current_batch(target_relation, inputs[0], progress, state)) }}
    {%- elif mart == 'field_changes' -%}
        {{ return(afterimage._field_changes_batch(
            target_relation, inputs[0], inputs[1] if inputs | length > 1 else none, progress, state
        )) }}
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
    {%- if afterimage._relation_description() -%}
        {%- do properties.update({'comment': afterimage._relation_description()}) -%}
    {%- endif -%}
    {%- do properties.update(afterimage._mart_properties(mart)) -%}
    {{ return(properties) }}
{% endmacro %}


{# The materializations of marts. #}
{% macro _mart_materializations() %}
    {{ return(['scd2_history', 'current_state', 'field_changes', 'change_activity']) }}
{% endmacro %}
