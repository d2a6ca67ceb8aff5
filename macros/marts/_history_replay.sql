{#
    From where the replay path builds each key of the batch again: from its first change in the batch on, over the version
    that stood then. So what it reads is as old as the oldest late change, and not as the log.

    Some keys are built from the beginning of the log, since the version that stood does not tell enough:
    - it has been updated in place by a later change, so it does not hold the values of that time (R4, R9)
    - a key change shares a transaction with what came before, whose displaced rows the version does not tell, or names
      neither transaction nor time (R7)
    - the first change contradicts what the load gave the key, or comes before an insert that did so (R8)
    - no version stood, and one that had ended bears a later time, which the new ones must not fall behind (R10)
#}
{% macro _history_replay(target_relation, table, found, decision, is_new) %}
    {%- set may_replay = decision.path == 'replay' and not afterimage._var('force_full_replay') -%}
    {%- set later = afterimage._history_look(table, afterimage._since(found.first_seq)) if may_replay else none -%}
    {%- if may_replay and not later.loads -%}
        {%- set given = afterimage._history_given_by(table, later, none, []) -%}
        {#- worked out once: what is looked at here is what the batch is built from, and joins it several times -#}
        {%- set keys = adapter.afterimage.checkpoint(afterimage._history_replayed_keys(target_relation, table, found, later, given, is_new)) -%}
        {%- do decision.update({'kept': [keys]}) -%}
        {%- set look = run_query(
            "select count_if(_from_seq is null), count(*), to_json(array_distinct(flatten(collect_set(_unknown_columns)))) from "
            ~ keys
        ).rows[0] -%}
        {%- set from_seq = found.first_seq if look[0] | int == 0 else none -%}
        {%- set unknown = fromjson(look[2] or '[]') -%}
        {%- if from_seq -%}
            {%- do decision.update({'why': decision.why ~ '; read from change_seq ' ~ from_seq ~ ' on'}) -%}
            {%- set given = afterimage._history_given_by(table, later, none, unknown) -%}
        {%- else -%}
            {%- do decision.update({'why': decision.why ~ '; ' ~ look[0] ~ ' of ' ~ look[1] ~ ' keys from the beginning of the log'}) -%}
            {%- set given = afterimage._history_given_by_log(table, unknown) -%}
        {%- endif -%}
        {#- 250,000 keys are about 25 MB -#}
        {%- do given.update({
            'where': afterimage._since(from_seq) if from_seq else none,
            'affected_keys': 'select * from ' ~ keys,
            'has_few_keys': look[1] | int <= 250000,
            'replays': true,
            'from_seq': from_seq,
        }) -%}
    {%- else -%}
        {%- set given = afterimage._history_given_by_log(table, []) -%}
        {%- if decision.path == 'replay' -%}
            {%- do given.update({'affected_keys': afterimage._history_batch_keys(table, is_new, found)}) -%}
            {%- do decision.update({'why': decision.why ~ '; from the beginning of the log'}) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if decision.path == 'replay' and afterimage._carries_lives(given) -%}
        {%- do decision.update({'path': 'rebuild', 'why': decision.why ~ ', and key changes carry values from key to key'}) -%}
        {{ return(afterimage._history_given_by_log(table, [])) }}
    {%- endif -%}
    {%- if given.replays -%}
        {#- read once, with all its columns: what stood is among what may change -#}
        {%- set stored = adapter.afterimage.checkpoint(afterimage._history_stored_versions(target_relation, table, given)) -%}
        {%- do decision.kept.append(stored) -%}
        {%- do given.update({'stored': stored, 'seeds': afterimage._history_standing_versions(stored)}) -%}
    {%- endif -%}
    {{ return(given) }}
{% endmacro %}


{# Condition: at a place in the order of changes, or after it. #}
{% macro _since(change_seq) %}
    {{- return("change_seq >= '" ~ change_seq ~ "'") -}}
{% endmacro %}


{# Condition on versions: open at a place in the order of changes, ended there, or after it. #}
{% macro _standing_since(change_seq, versions) %}
    {{- return("(" ~ versions ~ ".valid_to_seq is null or " ~ versions ~ ".valid_to_seq >= " ~ change_seq ~ ")") -}}
{% endmacro %}


{# Condition on versions: they hold what their key was just before a change there. #}
{% macro _stands_at(change_seq, versions) -%}
{{ change_seq }} > {{ versions }}.valid_from_seq
    and ({{ versions }}.valid_to_seq is null or {{ change_seq }} <= {{ versions }}.valid_to_seq)
{%- endmacro %}


{# A select of the batch's keys with `_from_seq`, NULL for the beginning of the log, and the unknown columns of what stood. #}
{% macro _history_replayed_keys(target_relation, table, found, later, given, is_new) -%}
{%- set key = table.settings.key -%}
{%- set keys = afterimage._listed(key) | replace('\n        ', ' ') -%}
{%- set is_side_new = is_new | replace('recorded_at', 'later_sides.recorded_at') -%}
{%- set has_untracked = given.carried or afterimage._without(table.columns, key + table.tracked) -%}
with

first_changes as (
    select
        {{ afterimage._listed(key) }},
        min(change_seq) as first_seq
    from (
        {{ afterimage._history_sides(table, is_new, found.moves) | indent(8) }}
    ) as sides
    group by {{ keys }}
),

standing as (
    select
        {{ afterimage._listed(key, 'first_changes.') }},
        versions.valid_from,
        versions.valid_to_seq,
        versions.transaction_id,
        versions.unknown_columns
    from first_changes
    inner join {{ target_relation }} as versions
        on
            {{ afterimage._equal(key, 'first_changes', 'versions', '=', indent=12) }}
            and {{ afterimage._stands_at('first_changes.first_seq', 'versions') | indent(8) }}
    where {{ afterimage._standing_since(afterimage._text(found.first_seq), 'versions') }}
),

later_sides as (
    {{ afterimage._history_sides(table, afterimage._since(found.first_seq), later.moves) | indent }}
),

replays as (
    select
        {{ afterimage._listed(key, 'first_changes.') }},
        first_changes.first_seq,
        any_value(standing.valid_from is not null) as is_standing,
        any_value(standing.unknown_columns) as unknown_columns,
        min(coalesce(later_sides.changed_at, {{ afterimage._beginning_of_time() }})) as earliest,
        coalesce(
            bool_or(
                {{ 'true' if has_untracked else 'standing.unknown_columns is not null' }}
                and not ({{ is_side_new }})
                and later_sides._kind not in ('X', 'D')
                and standing.valid_from is not null
                and (standing.valid_to_seq is null or later_sides.change_seq < standing.valid_to_seq)
            ),
            false
        ) as is_updated_since,
        {%- if later.moves %}
        coalesce(
            bool_or(
                {{ afterimage._is_of_transaction('later_sides', 'standing') }}
                or {{ afterimage._is_of_any_transaction('later_sides') }}
            ),
            false
        )
        or (any_value(standing.valid_from) is null and count_if(later_sides._kind in ('X', 'K')) > 1)
            as is_in_transaction
        {%- else %}
        false as is_in_transaction
        {%- endif %}
        {%- if table.settings.base %},
        any_value(standing.valid_from) is null
        and coalesce(bool_or(later_sides._kind = 'I' and not ({{ is_side_new }})), false) as is_inserted_later
        {%- endif %}
    from first_changes
    inner join later_sides
        on
            {{ afterimage._equal(key, 'first_changes', 'later_sides', '=', indent=12) }}
            and first_changes.first_seq <= later_sides.change_seq
    left join standing
        on {{ afterimage._equal(key, 'first_changes', 'standing', '=') }}
    group by {{ afterimage._listed(key, 'first_changes.') | replace('\n        ', ' ') }}, first_changes.first_seq
),

overtaken as (
    select distinct{{ '\n        ' if key | length > 1 else ' ' }}{{ afterimage._listed(key, 'versions.') }}
    from {{ target_relation }} as versions
    inner join replays
        on
            {{ afterimage._equal(key, 'versions', 'replays', '=', indent=12) }}
            and versions.valid_to_seq < replays.first_seq
            and versions.valid_to > replays.earliest
    where
        not replays.is_standing
        and versions.valid_to > timestamp '{{ later.first_changed_at }}'
)
{%- if table.settings.base %},

recent_versions as (
    select *
    from {{ target_relation }} as versions
    where {{ afterimage._standing_since(afterimage._text(found.first_seq), 'versions') }}
),

rewinding as (
    {{ afterimage._history_rewinding_keys(table, found, is_new, 'recent_versions') | indent }}
)
{%- endif %}

select
    {{ afterimage._listed(key, 'replays.', indent=4) }},
    if(
        replays.is_updated_since
        or replays.is_in_transaction
        or overtaken.{{ afterimage._quoted(key[0]) }} is not null
        {%- if table.settings.base %}
        or rewinding.{{ afterimage._quoted(key[0]) }} is not null
        or replays.is_inserted_later
        {%- endif %},
        null,
        replays.first_seq
    ) as _from_seq,
    replays.unknown_columns as _unknown_columns
from replays
left join overtaken
    on {{ afterimage._equal(key, 'replays', 'overtaken', '=') }}
{%- if table.settings.base %}
left join rewinding
    on {{ afterimage._equal(key, 'replays', 'rewinding', '=') }}
{%- endif %}
{%- endmacro %}


{# The stored versions of the keys as far as they may change, with `_from_seq` of their key. #}
{% macro _history_stored_versions(target_relation, table, given) -%}
select{{ afterimage._few_keys_hint(given) }}
    stored_versions.*,
    affected_keys._from_seq
from {{ target_relation }} as stored_versions
inner join ({{ given.affected_keys }}) as affected_keys
    on {{ afterimage._equal(table.settings.key, 'stored_versions', 'affected_keys', '=') }}
where
    (affected_keys._from_seq is null or {{ afterimage._standing_since('affected_keys._from_seq', 'stored_versions') }})
    {%- if given.from_seq %}
    and {{ afterimage._standing_since(afterimage._text(given.from_seq), 'stored_versions') }}
    {%- endif %}
{%- endmacro %}


{# Those of them that stood at the keys' `_from_seq`. #}
{% macro _history_standing_versions(stored) -%}
select *
    from {{ stored }}
    where {{ afterimage._stands_at('_from_seq', stored) | replace('\n    ', ' ') }}
{%- endmacro %}
