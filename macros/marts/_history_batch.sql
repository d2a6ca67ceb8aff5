{#
    What a run does to an existing history table, for `change_mart` to write; none when nothing is new.

    narrow  every change of the batch is newer than all before it: reads open versions only
    wide    the keys of the batch are rebuilt from the log, from their first change in the batch on where that will do,
            see `_history_replay`; the difference is written
    all     every key is rebuilt: the batch has a load, or what was applied is not known
#}
{% macro _history_batch(target_relation, changes, noted) %}
    {%- set after = adapter.afterimage.state(target_relation) -%}
    {%- set table = afterimage._history_table(changes) -%}
    {%- set applied = noted[afterimage._progress_name(target_relation)] -%}
    {%- set is_new = afterimage._recorded_after(applied.recorded_at) -%}
    {%- set answers = afterimage._asked({
        'found': afterimage._history_look_question(table, is_new),
        'published': afterimage._newest_batch_question(target_relation, is_new),
        'unknown': afterimage._open_unknown_columns_question(target_relation),
    }) -%}
    {#- more than the progress row says where a run was killed before it wrote one -#}
    {%- do applied.update({'is_known': answers.published is none}) -%}
    {%- set found = afterimage._history_found(table, answers.found) -%}
    {%- if not found.changes -%}
        {{ return(none) }}
    {%- endif -%}
    {%- do table.update({'changes': afterimage._recorded_up_to(changes, found.recorded_at)}) -%}
    {%- set decision = afterimage._history_path(target_relation, table, applied, found, is_new) -%}
    {%- if decision.path == 'incremental' -%}
        {%- set given = afterimage._history_given_by(table, found, none, fromjson(answers.unknown or '[]')) -%}
        {%- do given.update({
            'where': is_new,
            'affected_keys': none if found.truncates else afterimage._history_batch_keys(table, is_new, found),
            'seeds': afterimage._history_open_rows(target_relation, table, found),
        }) -%}
        {%- set source = afterimage._history_narrow_source(given, table, found) -%}
        {#- the open version of a key, and it has but one: closed rows are not read -#}
        {%- set identity, where = table.settings.key, 'target.is_current' -%}
    {%- else -%}
        {%- set given = afterimage._history_replay(target_relation, table, found, decision, is_new) -%}
        {%- set source = afterimage._history_wide_source(target_relation, given, table, found) -%}
        {#- what had ended before is not read -#}
        {%- set identity = [model.alias ~ '_id'] -%}
        {%- set where = afterimage._standing_since(afterimage._text(given.from_seq), 'target') if given.from_seq else '' -%}
    {%- endif -%}
    {{ return({
        'path': decision.path,
        'why': decision.why,
        'changes': found.changes,
        'applied': {
            'recorded_at': found.recorded_at,
            'change_seq': [found.change_seq, applied.change_seq] | select | max if found.change_seq or applied.change_seq else none,
            'changed_at': [found.changed_at, applied.changed_at] | select | max if found.changed_at or applied.changed_at else none,
            'path': decision.path,
        },
        'source': source,
        'identity': identity,
        'where': where,
        'after': after,
        'kept': decision.get('kept', []),
    }) }}
{% endmacro %}


{#
    A column of changes and of the markers of loads, for a maximum: how far the table is. A load may stand ahead of the
    changes that have landed, and its time is one that the keys' times must not fall behind (R10).
#}
{% macro _of_changes_and_loads(column) %}
    {{- return("if(change_oper <> 'L' or load_rows is not null, " ~ column ~ ", null)") -}}
{% endmacro %}


{# How much of what is in the changes that a condition selects. #}
{% macro _history_look(table, where) %}
    {{ return(afterimage._history_found(table, afterimage._asked({'found': afterimage._history_look_question(table, where)}).found)) }}
{% endmacro %}


{# The same as a question, for `_asked`. #}
{% macro _history_look_question(table, where) -%}
{%- set is_move = afterimage._is_key_change(table.settings.key) -%}
select
    to_json(
        struct(
            count(*) as changes,
            cast(max(recorded_at) as string) as recorded_at,
            min(change_seq) as first_seq,
            max({{ afterimage._of_changes_and_loads('change_seq') }}) as change_seq,
            {#- a time that is not known is the one before it, so it may be any (R10) #}
            cast(
                min(if(change_oper <> 'L', coalesce(changed_at, {{ afterimage._beginning_of_time() }}), null)) as string
            ) as first_changed_at,
            cast(max({{ afterimage._of_changes_and_loads('changed_at') }}) as string) as changed_at,
            count_if(change_oper = 'T') as truncates,
            count_if(load_rows is not null) as loads,
            min(if(load_rows is not null, change_seq, null)) as load_seq,
            count_if({{ is_move }}) as moves,
            count_if({{ is_move }} and {{ afterimage._is_blind_for(table.columns) }}) as blind_moves,
            array_distinct(flatten(collect_set(map_keys(truncate_scope)))) as scopes,
            collect_set(known_columns) as known,
            collect_set(before_known_columns) as before_known
        ),
        map('ignoreNullFields', 'false')
    )
from {{ table.changes | indent }}
where {{ where }}
{%- endmacro %}


{# Its answer, a text, as what the paths go by. #}
{% macro _history_found(table, answer) %}
    {%- set found = fromjson(answer) -%}
    {%- set has_ends = found.truncates > 0 or found.loads > 1 or (found.loads == 1 and found.first_seq < found.load_seq) -%}
    {%- do found.update({
        'has_ends': has_ends,
        'scopes': afterimage._truncate_scopes(table, found.scopes or []),
        'known': found.known + found.before_known,
    }) -%}
    {{ return(found) }}
{% endmacro %}


{# Columns that truncates name in their scope; each must be one of the table's. #}
{% macro _truncate_scopes(table, names) %}
    {%- for name in names if name not in table.columns -%}
        {{ exceptions.raise_compiler_error(
            model.name ~ ": a truncate of " ~ table.log ~ " has a `truncate_scope` with the column `" ~ name
            ~ "`, which the table lacks, so which rows it ended cannot be told. Allowed: " ~ table.columns | join(', ')
            ~ ". Fix: correct `truncate_scope` in the staging model."
        ) }}
    {%- endfor -%}
    {{ return(names | sort) }}
{% endmacro %}


{# Narrow, wide or all, and why. #}
{% macro _history_path(target_relation, table, applied, found, is_new) %}
    {%- set why = none -%}
    {%- if found.loads -%}
        {{ return({'path': 'rebuild', 'why': 'the batch has a full load'}) }}
    {%- elif not applied.is_known -%}
        {{ return({'path': 'rebuild', 'why': 'what was applied before is not known, a run was cut off'}) }}
    {%- elif applied.change_seq is none -%}
        {{ return({'path': 'rebuild', 'why': 'no change was applied before'}) }}
    {%- elif found.first_seq <= applied.change_seq -%}
        {%- set why = 'the batch has late changes' -%}
    {%- elif applied.changed_at and found.first_changed_at and found.first_changed_at < applied.changed_at -%}
        {%- set why = 'clocks ran back' -%}
    {%- elif afterimage._var('force_full_replay') -%}
        {%- set why = 'force_full_replay is set' -%}
    {%- elif table.settings.base and afterimage._history_rewinds(target_relation, table, found, is_new) -%}
        {%- set why = 'a change shows that the base table was ahead of the load' -%}
    {%- elif found.moves and afterimage._history_continues(target_relation, table, is_new) -%}
        {%- set why = 'a transaction that moves rows between keys began in an earlier batch' -%}
    {%- endif -%}
    {%- if why is none -%}
        {{ return({'path': 'incremental', 'why': 'all changes are newer than what was applied'}) }}
    {%- elif found.truncates -%}
        {{ return({'path': 'rebuild', 'why': why ~ ', and a truncate, which concerns every key'}) }}
    {%- endif -%}
    {{ return({'path': 'replay', 'why': why}) }}
{% endmacro %}


{# For `_asked`: columns that some open version does not know (R9), a list as JSON. #}
{% macro _open_unknown_columns_question(target_relation) -%}
select to_json(array_distinct(flatten(collect_set(unknown_columns))))
from {{ target_relation }}
where is_current and unknown_columns is not null
{%- endmacro %}


{# Arguments of `_versions` for the whole log, as far as it needs them: steps for what the log does not hold are left out. #}
{% macro _history_given_by_log(table, unknown=[]) %}
    {%- set found = afterimage._history_look(table, 'true') -%}
    {%- set base = table.settings.base if found.loads else none -%}
    {{ return(afterimage._history_given_by(table, found, base, table.columns if afterimage._has_blind_rewind(table) else unknown)) }}
{% endmacro %}


{# The same for what a look at changes has found; `unknown` are columns that versions among the seeds do not know. #}
{% macro _history_given_by(table, found, base, unknown) %}
    {%- set given = afterimage._history_given(table, afterimage._unknown_columns(table, found.known, unknown)) -%}
    {%- do given.update({
        'base': base,
        'has_ends': found.has_ends,
        'scopes': found.scopes,
        'has_moves': found.moves > 0,
        'has_incomplete_key_changes': found.blind_moves > 0,
        'recorded_at': found.recorded_at,
    }) -%}
    {{ return(given) }}
{% endmacro %}


{# Columns missing from some list of known columns, or named in `others`; never the key. In the table's order. #}
{% macro _unknown_columns(table, known_lists, others) %}
    {%- set unknown = others | list -%}
    {%- for known in known_lists -%}
        {%- do unknown.extend(afterimage._without(table.columns, known)) -%}
    {%- endfor -%}
    {%- set carried = [] -%}
    {%- for name in table.columns if name in unknown and name not in table.settings.key -%}
        {%- do carried.append(name) -%}
    {%- endfor -%}
    {{ return(carried) }}
{% endmacro %}


{# Whether a row of a live base must be taken back to the load by a change without before image: then nothing of it is known (R8). #}
{% macro _has_blind_rewind(table) %}
    {%- if not table.settings.base or table.settings.base.kind != 'live' -%}
        {{ return(false) }}
    {%- endif -%}
    {%- set statement -%}
        select 1
        from (
            select min_by(change_oper = 'U' and before is null, change_seq) as is_blind
            from {{ table.changes | indent(12) }}
            cross join (
                select collect_list(change_seq) as _loads
                from {{ table.changes | indent(16) }}
                where load_rows is not null
            ) as loads
            where change_oper not in ('L', 'T')
            group by
                {{ afterimage._listed(table.settings.key, indent=16) }},
                -- of each load
                size(filter(_loads, _load -> _load <= change_seq))
        ) as first_changes
        where is_blind
        limit 1
    {%- endset -%}
    {{ return(run_query(statement).rows | length > 0) }}
{% endmacro %}


{# Distinct keys that the batch names, old ones included. #}
{% macro _history_batch_keys(table, is_new, found) -%}
select distinct{{ '\n        ' if table.settings.key | length > 1 else ' ' }}{{ afterimage._listed(table.settings.key) }}
    from (
        {{ afterimage._history_sides(table, is_new, found.moves) | indent(8) }}
    ) as sides
{%- endmacro %}


{# Open versions of the batch's keys, or all of them when a truncate ends them all. #}
{% macro _history_open_rows(target_relation, table, found) -%}
    {%- if found.truncates -%}
select *
    from {{ target_relation }}
    where is_current
    {%- else -%}
select opened.*
    from {{ target_relation }} as opened
    left semi join affected_keys
        on {{ afterimage._equal(table.settings.key, 'opened', 'affected_keys', '=') }}
    where opened.is_current
    {%- endif -%}
{%- endmacro %}


{# Rows to write on the incremental path: new versions, and open ones that are closed or updated in place. #}
{% macro _history_narrow_source(given, table, found) -%}
{{ afterimage._versions(given) }}

select
    _version_id as {{ model.alias }}_id,
    {{ afterimage._listed(afterimage._history_columns(table)[1:] | reject('equalto', 'recorded_at') | list, indent=4) }},
    timestamp '{{ found.recorded_at }}' as recorded_at,
    if(_is_seed, 'update', 'insert') as _write_action
from versions
where not _is_seed or valid_to_seq is not null or _is_updated_in_place
{%- endmacro %}


{# Rows to write on the replay path: the difference between the rebuilt versions and the stored ones. #}
{% macro _history_wide_source(target_relation, given, table, found) -%}
{%- set id = model.alias ~ '_id' -%}
{%- set values = afterimage._history_columns(table)[1:] | reject('equalto', 'recorded_at') | list -%}
{{ afterimage._versions(given) }},

stored as (
    {%- if given.stored %}
    select *
    from {{ given.stored }}
    {%- elif given.affected_keys %}
    select stored_rows.*
    from {{ target_relation }} as stored_rows
    left semi join affected_keys
        on {{ afterimage._equal(table.settings.key, 'stored_rows', 'affected_keys', '=', indent=12) }}
    {%- else %}
    select *
    from {{ target_relation }}
    {%- endif %}
),

compared_versions as (
    select
        coalesce(versions._version_id, stored.{{ id }}) as {{ id }},
        {%- for name in values %}
        versions.{{ afterimage._quoted(name) }},
        {%- endfor %}
        case
            when versions._version_id is null then 'delete'
            when stored.{{ id }} is null then 'insert'
            else 'update'
        end as _write_action,
        struct({{ afterimage._listed(values, 'stored.') | replace('\n        ', ' ') }}) as _stored
    from versions
    full outer join stored
        on versions._version_id = stored.{{ id }}
)

select
    {{ id }},
    {{ afterimage._listed(values, indent=4) }},
    timestamp '{{ found.recorded_at }}' as recorded_at,
    _write_action
from compared_versions
where
    _write_action <> 'update'
    or not (struct({{ afterimage._listed(values) | replace('\n        ', ' ') }}) <=> _stored)
{%- endmacro %}
