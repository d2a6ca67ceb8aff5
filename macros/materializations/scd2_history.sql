{# Materialization of `<table>_history`: SCD2 versions of the rows of a change log, see `_materialize_mart`. #}
{% materialization scd2_history, adapter='spark' %}
    {%- do afterimage._check_history_select(sql, afterimage._mart_inputs()[0]) -%}
    {{ return(afterimage._materialize_mart('history')) }}
{% endmaterialization %}


{# Stops where the model selects anything but the whole log: a version depends on all changes of its row. #}
{% macro _check_history_select(sql, log) %}
    {%- set selected = modules.re.sub('--.*', '', sql).split() | join(' ') -%}
    {%- if selected != 'select * from ' ~ log -%}
        {{ exceptions.raise_compiler_error(
            "`history`: " ~ model.name ~ " selects `" ~ selected ~ "`; allowed: `select * from " ~ log ~ "`, which the macro"
            ~ " renders. Nothing was written. Fix: make the call of `history` the whole model, and filter or rename columns"
            ~ " in the staging model."
        ) }}
    {%- endif -%}
{% endmacro %}


{# The rows of a history that is created or replaced, and what they apply. #}
{% macro _whole_history(log) %}
    {{ return(adapter.afterimage.whole_history(log, afterimage._history_table(model, log))) }}
{% endmacro %}


{# The batch of an existing history; none if nothing is new. #}
{% macro _history_batch(target_relation, log, progress, state) %}
    {%- set batch = adapter.afterimage.history_batch(
        target_relation, log, afterimage._history_table(model, log),
        progress[afterimage._progress_name(target_relation)], progress[afterimage._progress_name(log)],
        afterimage._is_as_published(target_relation, log, progress, state), afterimage._var('force_full_replay')
    ) -%}
    {%- if batch is not none -%}
        {%- do batch.update({'after': state}) -%}
    {%- endif -%}
    {{ return(batch) }}
{% endmacro %}


{# The settings and data columns of a history, for Python. #}
{% macro _history_table(node, log) %}
    {%- set settings = afterimage._settings_of(node) -%}
    {{ return({
        'name': node.alias,
        'settings': settings,
        'data_columns': afterimage._data_columns(log, settings) | map(attribute='name') | list,
        'beginning_of_time': afterimage._var('beginning_of_time'),
    }) }}
{% endmacro %}
