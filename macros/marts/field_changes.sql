{#
    The body of a `<table>_field_changes` model: one row per field that a change changed, with its old and new value.

    Where the source stores before images, they say what changed; else history does, by the version before.

    Arguments:
      changes  ref('<table>_changes')
      history  ref('<table>_history'); only for tables with `before_images: false`
#}
{% macro field_changes(changes, history=none) %}
    {{- config(materialized='change_mart', mart='field_changes') -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {{ return(_field_changes_since(changes, history, 'true')) }}
{% endmacro %}


{# Field changes of the batches that a condition on recorded_at selects. #}
{% macro _field_changes_since(changes, history, is_new) -%}
{%- set settings = _settings_of(model) -%}
{%- set columns = _data_columns(changes, settings) -%}
{%- if not settings.before_images and history is none -%}
    {{ exceptions.raise_compiler_error(
        "`field_changes`: " ~ model.name ~ " stands on a table with `before_images: false`, so old values must come from"
        ~ " history. Write field_changes(ref('...'), history=ref('<table>_history'))."
    ) }}
{%- endif -%}
{{ _field_changes_by_images(changes, settings, columns, is_new) if settings.before_images
    else _field_changes_by_versions(history, settings, columns, is_new) }}
{%- endmacro %}


{# From before images: compares `before` with the image after, where both are known. #}
{% macro _field_changes_by_images(changes, settings, columns, is_new) -%}
{%- set key = settings.key -%}
{%- set with_others = var('field_changes_of_inserts_and_deletes') -%}
with

changes as (
    select *
    from {{ changes }}
    where
        {{ is_new }}
        and {{ "(before is not null or change_oper in ('I', 'D'))" if with_others else "before is not null" }}
),

compared as (
    select
        {{ _listed(key) }}{{ ',' if key }}
        {%- if key %}
        case
            when before is not null and not ({{ _equal(key, 'before', 'changes') }})
                then struct({% for name in key %}before.{{ _quoted(name) }} as {{ _quoted(name) }}{{ ', ' if not loop.last }}{% endfor %})
        end as previous_key,
        {%- endif %}
        change_seq,
        changed_at,
        transaction_id,
        change_oper,
        recorded_at,
        inline(
            filter(
                array(
                    {%- for column in columns %}
                    {%- set name = _quoted(column.name) %}
                    struct(
                        '{{ column.name }}' as column_name,
                        {{ _as_text('before.' ~ name, column.data_type) if not with_others
                            else "case when change_oper = 'D' then " ~ _as_text(name, column.data_type) ~ " else " ~ _as_text('before.' ~ name, column.data_type) ~ " end" }} as old_value,
                        {{ _as_text(name, column.data_type) if not with_others
                            else "case when change_oper <> 'D' then " ~ _as_text(name, column.data_type) ~ " end" }} as new_value,
                        {{ 'change_oper = \'U\' and ' if with_others }}not (before.{{ name }} <=> {{ name }})
                        and (known_columns is null or array_contains(known_columns, '{{ column.name }}'))
                        and (before_known_columns is null or array_contains(before_known_columns, '{{ column.name }}'))
                        {%- if with_others %}
                        or change_oper in ('I', 'D') and {{ name }} is not null
                        {%- endif %} as is_changed
                    ){{ ',' if not loop.last }}
                    {%- endfor %}
                ),
                field -> field.is_changed
            )
        )
    from changes
)

select
    {{ _listed(key, indent=4) }}{{ ',' if key }}
    {%- if key %}
    previous_key,
    {%- endif %}
    change_seq,
    changed_at,
    transaction_id,
    change_oper,
    column_name,
    old_value,
    new_value,
    'before_image' as derived_from,
    recorded_at
from compared
{%- endmacro %}


{# From history: a version opened by an update, compared with the version that it closed. #}
{% macro _field_changes_by_versions(history, settings, columns, is_new) -%}
{%- set key = settings.key -%}
with

opened as (
    select *
    from {{ history }}
    where {{ is_new }} and opened_by = 'U' and size(changed_columns) > 0
),

compared as (
    select
        {{ _listed(key, 'opened.') }},
        -- without before images a key change cannot be seen
        if(false, struct({{ _listed(key, 'opened.') | replace('\n        ', ' ') }}), null) as previous_key,
        opened.valid_from_seq as change_seq,
        opened.valid_from as changed_at,
        opened.transaction_id,
        opened.opened_by as change_oper,
        opened.recorded_at,
        inline(
            filter(
                array(
                    {%- for column in columns if column.name not in key %}
                    {%- set name = _quoted(column.name) %}
                    struct(
                        '{{ column.name }}' as column_name,
                        {{ _as_text('closed.' ~ name, column.data_type) }} as old_value,
                        {{ _as_text('opened.' ~ name, column.data_type) }} as new_value
                    ){{ ',' if not loop.last }}
                    {%- endfor %}
                ),
                field -> array_contains(opened.changed_columns, field.column_name)
            )
        )
    from opened
    inner join {{ history }} as closed
        on
            {{ _equal(key, 'opened', 'closed', '=') }}
            and opened.valid_from_seq = closed.valid_to_seq
)

select
    {{ _listed(key, indent=4) }},
    previous_key,
    change_seq,
    changed_at,
    transaction_id,
    change_oper,
    column_name,
    old_value,
    new_value,
    'previous_version' as derived_from,
    recorded_at
from compared
{%- endmacro %}


{# A value as text: binary as hex, timestamps ISO in UTC, nested values as JSON. #}
{% macro _as_text(expression, data_type) %}
    {%- set kind = data_type | lower -%}
    {%- if kind == 'binary' -%}
        {{ return("hex(" ~ expression ~ ")") }}
    {%- elif kind == 'timestamp' -%}
        {{ return("date_format(" ~ expression ~ ", \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\")") }}
    {%- elif kind.startswith('array') or kind.startswith('struct') or kind.startswith('map') -%}
        {{ return("to_json(" ~ expression ~ ")") }}
    {%- endif -%}
    {{ return("cast(" ~ expression ~ " as string)") }}
{% endmacro %}


{# What a run adds to an existing field-changes table: the rows of batches that it does not hold yet. #}
{% macro _field_changes_batch(target_relation, changes, history) %}
    {%- set applied = _read_progress(target_relation.identifier) -%}
    {%- set is_new = "recorded_at > timestamp'" ~ applied.recorded_at ~ "'" if applied.recorded_at else 'true' -%}
    {%- set input = history if history else changes -%}
    {%- set found = run_query(
        "select count(*), cast(max(recorded_at) as string) from " ~ input ~ " where " ~ is_new
    ).rows[0] -%}
    {%- if not found[0] | int -%}
        {{ return(none) }}
    {%- endif -%}
    {#- a run that was killed before it noted its progress has published already; a batch is whole or absent -#}
    {%- set published = run_query(
        "select cast(max(recorded_at) as string) from " ~ target_relation ~ " where " ~ is_new
    ).rows[0][0] -%}
    {%- set since = "recorded_at > timestamp'" ~ published ~ "'" if published else is_new -%}
    {%- set statement -%}
insert into {{ target_relation }} by name
{{ _field_changes_since(changes, history, since) }}
    {%- endset -%}
    {{ return({
        'path': 'append',
        'why': 'new batches only',
        'changes': found[0] | int,
        'applied': {'recorded_at': found[1], 'change_seq': none, 'changed_at': none},
        'statement': statement,
    }) }}
{% endmacro %}
