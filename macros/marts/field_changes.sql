{#
    The body of a `<table>_field_changes` model: one row per field that a change changed, with its old and new value.

    Where the source stores before images, they say what changed; else history does, by the version before.
    This is the whole table, as a first run builds it; `_field_changes_batch` is what a later run adds.

    Arguments:
      changes  ref('<table>_changes')
      history  ref('<table>_history'); only for tables with `before_images: false`
#}
{% macro field_changes(changes, history=none) %}
    {{- config(materialized='field_changes') -}}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- set settings = afterimage._settings_of(model) -%}
    {%- do afterimage._check_key_of_field_changes(settings) -%}
    {%- set columns = afterimage._data_columns(changes, settings) -%}
    {%- if settings.before_images -%}
        {{ return(afterimage._field_changes_by_images(changes, settings, columns)) }}
    {%- elif history is none -%}
        {{ exceptions.raise_compiler_error(
            "`field_changes`: the source table of " ~ model.name ~ " has `before_images: false`, so old values must come from"
            ~ " history. Fix: write field_changes(ref('...'), history=ref('<table>_history'))."
        ) }}
    {%- endif -%}
    {{ return(afterimage._field_changes_by_versions("select * from " ~ history, settings, columns)) }}
{% endmacro %}


{# From before images: compares `before` with the image after, where both are known. `is_new`: condition on the log. #}
{% macro _field_changes_by_images(changes, settings, columns, is_new=none) -%}
{%- set key = settings.key -%}
{%- set with_others = afterimage._var('field_changes_of_inserts_and_deletes') -%}
with

changes as (
    select *
    from {{ changes }}
    where
        {{ "(before is not null or change_oper in ('I', 'D'))" if with_others else "before is not null" }}
        {%- if is_new %}
        and {{ is_new }}
        {%- endif %}
),

compared as (
    select
        {{ afterimage._listed(key) }}{{ ',' if key }}
        {%- if key %}
        case
            when {{ afterimage._is_key_change(key) }}
                then struct(
                    {%- for name in key %}
                    before.{{ afterimage._quoted(name) }} as {{ afterimage._quoted(name) }}{{ ',' if not loop.last }}
                    {%- endfor %}
                )
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
                    {%- set name = afterimage._quoted(column.name) %}
                    {%- set old_value = afterimage._as_text('before.' ~ name, column.data_type) %}
                    {%- set new_value = afterimage._as_text(name, column.data_type) %}
                    struct(
                        {{ afterimage._text(column.name) }} as column_name,
                        {%- if with_others %}
                        case when change_oper = 'D' then {{ new_value }} else {{ old_value }} end as old_value,
                        case when change_oper <> 'D' then {{ new_value }} end as new_value,
                        (
                            change_oper = 'U'
                            and not (before.{{ name }} <=> {{ name }})
                            and (known_columns is null or array_contains(known_columns, {{ afterimage._text(column.name) }}))
                            and (
                                before_known_columns is null
                                or array_contains(before_known_columns, {{ afterimage._text(column.name) }})
                            )
                        )
                        or (change_oper in ('I', 'D') and {{ name }} is not null) as is_changed
                        {%- else %}
                        {{ old_value }} as old_value,
                        {{ new_value }} as new_value,
                        not (before.{{ name }} <=> {{ name }})
                        and (known_columns is null or array_contains(known_columns, {{ afterimage._text(column.name) }}))
                        and (
                            before_known_columns is null
                            or array_contains(before_known_columns, {{ afterimage._text(column.name) }})
                        ) as is_changed
                        {%- endif %}
                    ){{ ',' if not loop.last }}
                    {%- endfor %}
                ),
                field -> field.is_changed
            )
        ) as (column_name, old_value, new_value, is_changed)
    from changes
)

select
    {{ afterimage._listed(afterimage._field_changes_columns(key)[:-2], indent=4) }},
    {{ "if(change_oper = 'I', null, 'before_image')" if with_others else "'before_image'" }} as derived_from,
    recorded_at
from compared
{%- endmacro %}


{#
    From history: a version opened by an update, or by a full load that shows other values, compared with the version that it
    closed.

    Arguments:
      rows       select of the history rows to read
      after_seq  only versions opened after this change_seq; none for all
#}
{% macro _field_changes_by_versions(rows, settings, columns, after_seq=none) -%}
{%- set key = settings.key -%}
with

versions as (
    {{ rows }}
),

opened as (
    select *
    from versions
    where
        opened_by in ('U', 'L')
        and size(changed_columns) > 0
        {%- if after_seq %}
        and valid_from_seq > {{ afterimage._text(after_seq) }}
        {%- endif %}
),

compared as (
    select
        {{ afterimage._listed(key, 'opened.') }},
        -- without before images a key change cannot be seen
        if(
            false,
            struct({{ afterimage._listed(key, 'opened.') | replace('\n        ', ' ') }}),
            null
        ) as previous_key,
        opened.valid_from_seq as change_seq,
        opened.valid_from as changed_at,
        opened.transaction_id,
        opened.opened_by as change_oper,
        opened.recorded_at,
        inline(
            filter(
                {%- if columns | length > key | length %}
                array(
                    {%- for column in columns if column.name not in key %}
                    {%- set name = afterimage._quoted(column.name) %}
                    struct(
                        {{ afterimage._text(column.name) }} as column_name,
                        {{ afterimage._as_text('closed.' ~ name, column.data_type) }} as old_value,
                        {{ afterimage._as_text('opened.' ~ name, column.data_type) }} as new_value
                    ){{ ',' if not loop.last }}
                    {%- endfor %}
                ),
                {%- else %}
                cast(array() as array<struct<column_name: string, old_value: string, new_value: string>>),
                {%- endif %}
                field -> array_contains(opened.changed_columns, field.column_name)
                -- what was not known before may have been the same
                and not coalesce(array_contains(closed.unknown_columns, field.column_name), false)
            )
        ) as (column_name, old_value, new_value)
    from opened
    inner join versions as closed
        on
            {{ afterimage._equal(key, 'opened', 'closed', '=', indent=12) }}
            and opened.valid_from_seq = closed.valid_to_seq
)

select
    {{ afterimage._listed(afterimage._field_changes_columns(key)[:-2], indent=4) }},
    'previous_version' as derived_from,
    recorded_at
from compared
{%- endmacro %}


{# Stops where a key column has the name of a column that describes the change. #}
{% macro _check_key_of_field_changes(settings) %}
    {%- set own = ['previous_key'] + afterimage._field_changes_columns([]) -%}
    {%- for name in settings.key if name | lower in own -%}
        {{ exceptions.raise_compiler_error(
            "`field_changes`: the source table " ~ settings.source_table ~ " has the key column `" ~ name ~ "`, a name that field"
            ~ " changes have for a column of their own: " ~ own | join(', ') ~ ". Nothing was written. Fix: "
            ~ adapter.afterimage.way_to_rename(settings) ~ " Or remove the model " ~ model.name ~ "."
        ) }}
    {%- endfor -%}
{% endmacro %}


{# The columns of a field-changes table, in order. #}
{% macro _field_changes_columns(key) %}
    {{ return(
        key + (['previous_key'] if key else []) + [
            'change_seq', 'changed_at', 'transaction_id', 'change_oper', 'column_name', 'old_value', 'new_value',
            'derived_from', 'recorded_at',
        ]
    ) }}
{% endmacro %}
