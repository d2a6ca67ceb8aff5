{#
    A current table that keeps deleted keys (setting `keep_deleted`): per key the last version of its history, whether it
    is open or closed. A key whose last version a key change closed (K) has no row: its row was not deleted,
    it is under its new key. Closed by D, T or R is deleted.
#}

{# What `keep_deleted` adds to a current table. #}
{% macro _deletion_columns(settings) %}
    {{ return(['is_deleted', 'deleted_at'] if settings.keep_deleted else []) }}
{% endmacro %}


{# Stops when the setting is not the one that the table was built with: its columns would be other ones. #}
{% macro _check_keep_deleted(target_relation, history, settings) %}
    {%- set built = 'is_deleted' in afterimage._raw_columns(target_relation) | map(attribute='name') | list
        and 'is_deleted' not in afterimage._raw_columns(history) | map(attribute='name') | list -%}
    {%- if built != settings.keep_deleted -%}
        {{ exceptions.raise_compiler_error(
            "`current`: " ~ target_relation ~ " was built with `keep_deleted: " ~ built | lower ~ "`, and the setting of its"
            ~ " source table is now " ~ settings.keep_deleted | lower ~ ". Nothing was written. Fix: rebuild it with"
            ~ " dbt run --full-refresh --select " ~ model.name ~ ", or set `keep_deleted` back."
        ) }}
    {%- endif -%}
{% endmacro %}


{# The whole table. #}
{% macro _current_rows_with_deleted(history, key, columns) -%}
with

{{ afterimage._last_versions("select *\n    from " ~ history, key) }}

select
    {{ afterimage._current_values(columns) }}
from last_versions
where
    _place_from_end = 1
    and (is_current or closed_by <> 'K')
{%- endmacro %}


{#
    The last versions of the keys that history wrote, and keys to take out: left by a key change, or history
    holds no version of them any more.

    Incremental: history wrote only versions newer than those it had, so the last one is among them. Otherwise it may have
    written only an older one, or none and removed the last one: all versions of such keys are read.
#}
{% macro _current_source_with_deleted(history, target_relation, key, columns, is_new, path) -%}
{%- set rows -%}
    {%- if path == 'incremental' -%}
select *
    from {{ history }}
    where {{ is_new }}
    {%- else -%}
select history_rows.*
    from {{ history }} as history_rows
    left semi join affected_keys
        on {{ afterimage._equal(key, 'history_rows', 'affected_keys', '=') }}
    {%- endif -%}
{%- endset -%}
with
{%- if path != 'incremental' %}

affected_keys as (
    {{ afterimage._keys_written_by_history(history, key, is_new, target_relation, 'valid_from_seq') | indent }}
    union
    -- deleted before a version that a key change had closed, and that history has removed
    select{{ '\n        ' if key | length > 1 else ' ' }}{{ afterimage._listed(key, 'history_rows.', indent=8) }}
    from {{ history }} as history_rows
    left anti join {{ target_relation }} as mart_rows
        on {{ afterimage._equal(key, 'history_rows', 'mart_rows', '=', indent=8) }}
    where
        not history_rows.is_current
        and history_rows.closed_by <> 'K'
),
{%- endif %}

{{ afterimage._last_versions(rows, key) }}

select
    {{ afterimage._current_values(columns) }},
    if(not is_current and closed_by = 'K', 'delete', 'update') as _write_action
from last_versions
where _place_from_end = 1
{%- if path != 'incremental' %}
union all
select
    {%- for name in columns %}
    {{ 'checkpointed_rows.' ~ afterimage._quoted(name) if name in key else 'null as ' ~ afterimage._quoted(name) }},
    {%- endfor %}
    'delete' as _write_action
from {{ target_relation }} as checkpointed_rows
left anti join {{ history }} as history_rows
    on {{ afterimage._equal(key, 'checkpointed_rows', 'history_rows', '=') }}
{%- endif %}
{%- endmacro %}


{# Versions with their place from the end among those of their key. #}
{% macro _last_versions(rows, key) -%}
versions as (
    {{ rows }}
),

last_versions as (
    select
        *,
        row_number() over (
            partition by
                {{ afterimage._listed(key, indent=16) }}
            order by valid_from_seq desc
        ) as _place_from_end
    from versions
)
{%- endmacro %}


{# Columns of a current table as expressions over its history. #}
{% macro _current_values(columns) %}
    {%- set expressions = {'is_deleted': 'not is_current as is_deleted', 'deleted_at': 'valid_to as deleted_at'} -%}
    {%- set parts = [] -%}
    {%- for name in columns -%}
        {%- do parts.append(expressions.get(name, afterimage._quoted(name))) -%}
    {%- endfor -%}
    {{ return(parts | join(',\n    ')) }}
{% endmacro %}
