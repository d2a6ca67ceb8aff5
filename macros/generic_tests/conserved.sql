{#
    Generic test of a change log: no raw record was lost on the way into it, and none is in it twice.

    Every distinct record of the staging model is in the log, as a change or as the before image of one; or in
    `<log>_rejected`; or pending: an update or before image without its partner, which may still follow and which the
    look-back still covers.
    Records are compared by change_seq and content (record_hash), not counted: two errors cannot cancel out. Records
    that are not row changes (`N`) are left out. A full load is compared by its row count, because a base table keeps
    changing.

    A record that was recorded with a value in a column that the source no longer has now has other content: only its
    change_seq is compared. The same holds for a record whose hash is of an earlier form (decision 55).

    Records that `afterimage erase --rows` removed are left out; those with erased columns are in the log with their hash.

    Where the staging model reads a decoded log (messages, solidDB), that log is compared with the raw table too, by the
    places of records (`_not_decoded`).

    `what_is_wrong` names `backfill_from` where a record lies further back than the look-back: a raw table that is neither
    Iceberg nor Delta does not show which rows are new, and runs do not read such a record otherwise.

    It reads the whole staging model. Run it while nothing is landed, or with `while_landing: true`.

    Arguments:
      staging        ref('stg_<system>__<table>')
      while_landing  true: leave out records beyond the log's last change, and those of the last mark of arrival that it
                     has read and of later ones; they may have come after the log was written
#}
{% test conserved(model, staging, while_landing=false) %}
    {%- if not execute -%}
        {{ return('select 1') }}
    {%- endif -%}
    {%- do afterimage._check_relation_argument('conserved', 'staging', staging) -%}
    {%- do afterimage._check_whole_table('conserved', model) -%}
    {%- if while_landing is not boolean -%}
        {{ exceptions.raise_compiler_error(
            "`conserved` on " ~ afterimage._tested_node().name ~ ": `while_landing` is true or false, got " ~ while_landing ~ "."
        ) }}
    {%- endif -%}
    {%- do adapter.afterimage.write_pending_progress() if while_landing -%}
    {%- set settings = afterimage._tested_settings() -%}
    {%- set staged_names = afterimage._raw_columns(staging) | map(attribute='name') | list -%}
    {%- set has_feed_loads = settings.get('load_id') -%}
    {%- set lost = afterimage._lost_columns(model, staging, settings) -%}
    {%- set same_content = 'staged.record_hash = recorded.record_hash' -%}
    {%- set hashed_after = afterimage._hashed_after(model) -%}
    {%- set is_hashed = "recorded_at > timestamp '" ~ hashed_after ~ "'" if hashed_after else '' -%}
    {%- set is_known = [is_hashed, afterimage._are_null(lost)] | select | join(' and ') -%}
    {%- set erased_key = afterimage._erased_key_hash(model, staging, settings) -%}
    {%- set not_decoded = afterimage._not_decoded(while_landing) -%}
    {%- set is_before_known = [is_hashed, afterimage._are_null(lost, 'before.')] | select | join(' and ') -%}
with

staged as (
    select distinct
        change_seq,
        change_oper,
        load_id,
        {%- if 'partner_may_follow' in staged_names %}
        coalesce(partner_may_follow, true) as may_be_pending,
        {%- else %}
        true as may_be_pending,
        {%- endif %}
        {%- if while_landing %}
        arrival,
        {%- endif %}
        {%- if has_feed_loads %}
        ends_load,
        record_hash
        {%- else %}
        case when change_oper = 'L' then null else record_hash end as record_hash
        {%- endif %}
        {%- if erased_key %},
        {{ erased_key if has_feed_loads else "if(change_oper = 'L', null, " ~ erased_key ~ ")" }} as key_hash
        {%- endif %}
    from {{ staging }}
    where change_oper is null or change_oper <> 'N'
),

{% if erased_key -%}
erased as (
    select
        key_hash,
        max(up_to_change_seq) as up_to
    from {{ afterimage._erasures_relation() }}
    where
        change_log = {{ afterimage._text(afterimage._progress_name(model)) }}
        and erased_columns is null
    group by key_hash
),

{% endif -%}
logged as (
    select
        change_seq,
        change_oper,
        load_id,
        load_rows,
        record_hash,
        before_record_hash
        {%- if is_known %},
        {{ is_known }} as has_its_hash,
        {{ is_before_known }} as has_its_before_hash
        {%- endif %}
    from {{ model }}
),

recorded as (
    select
        change_seq,
        {{ 'if(has_its_hash, record_hash, null) as ' if is_known }}record_hash
    from logged
    where change_oper <> 'L'
    union all
    select
        change_seq,
        {{ 'if(has_its_before_hash, before_record_hash, null)' if is_known else 'before_record_hash' }} as record_hash
    from logged
    where before_record_hash is not null
),

rejected as (
    select
        change_seq,
        change_oper,
        {{ 'if(' ~ is_hashed ~ ', record_hash, null) as ' if is_hashed }}record_hash
    from {{ afterimage._rejected_relation(model) }}
),

last_change as (
    select max(change_seq) as change_seq
    from logged
    where change_oper <> 'L'
),

horizon as (
    select
        change_seq as last_seq,
        {{ adapter.afterimage.before_look_back_sql(settings, 'change_seq') }} as change_seq
    from last_change
),

{%- if while_landing %}

newest_arrival as (
    select max(arrival) as arrival
    from {{ afterimage._progress_relation() }}
    where model = '{{ afterimage._progress_name(model) }}'
),
{%- endif %}

absent as (
    select
        staged.*,
        min(staged.change_oper) over by_seq as first_oper,
        max(staged.change_oper) over by_seq as last_oper
    from staged
    left anti join recorded
        on
            staged.change_seq = recorded.change_seq
            and {{ 'coalesce(' ~ same_content ~ ', true)' if is_known else same_content }}
    left anti join rejected
        on
            {{ '(' if is_hashed }}staged.record_hash = rejected.record_hash
            {%- if is_hashed %}
            or (
                rejected.record_hash is null
                and staged.change_seq <=> rejected.change_seq
                and staged.change_oper <=> rejected.change_oper
            ))
            {%- endif %}
    {%- if erased_key %}
    left anti join erased
        on
            staged.key_hash = erased.key_hash
            and staged.change_seq <= erased.up_to
    {%- endif %}
    where staged.change_oper is null or staged.change_oper <> 'L'
    window by_seq as (partition by staged.change_seq)
),

-- an update and a before image that are both absent have each other, so they do not wait for a partner
lost as (
    select
        'neither in the log nor rejected'
        || if(
            absent.change_seq <= horizon.change_seq,
            '; if it came too late for the look-back, run once with --vars \'{backfill_from: "'
            || absent.change_seq || '"}\'',
            ''
        ) as what_is_wrong,
        absent.change_seq,
        absent.change_oper,
        absent.record_hash,
        cast(null as string) as load_id
    from absent
    cross join horizon
    {%- if while_landing %}
    cross join newest_arrival
    {%- endif %}
    where
        not coalesce(
            absent.change_oper in ({{ "'U', 'B'" if settings.before_images else "'B'" }})
            and absent.may_be_pending
            and absent.first_oper = absent.last_oper
            and absent.change_seq > horizon.change_seq,
            false
        )
        {%- if while_landing %}
        and (absent.change_seq is null or absent.change_seq <= coalesce(horizon.last_seq, ''))
        and not coalesce(absent.arrival >= newest_arrival.arrival, false)
        {%- endif %}
),

repeated as (
    select
        'the log has this record ' || count(*)
        || ' times; rebuild it with the var rebuild_changes' as what_is_wrong,
        change_seq,
        change_oper,
        record_hash,
        cast(null as string) as load_id
    from logged
    where change_oper <> 'L'
    group by change_seq, change_oper, record_hash
    having count(*) > 1
),

loads as (
    select
        load_id,
        count_if(load_rows is null) as loaded_rows,
        count_if(load_rows is not null) as markers,
        max(load_rows) as announced_rows,
        max(if(load_rows is not null, change_seq, null)) as load_position
    from logged
    where change_oper = 'L'
    group by load_id
),

staged_loads as (
    select {{ 'load_id' if has_feed_loads else 'distinct load_id' }}
    from staged
    where change_oper = 'L'
    {%- if has_feed_loads %}
    group by load_id
    having bool_or(ends_load)
    {%- endif %}
),
{%- if has_feed_loads and not is_known %}

lost_load_rows as (
    select
        'a row of a full load is neither in the log nor rejected' as what_is_wrong,
        staged.change_seq,
        staged.change_oper,
        staged.record_hash,
        staged.load_id
    from staged
    inner join loads
        on staged.load_id = loads.load_id
    left anti join logged
        on
            staged.load_id = logged.load_id
            and staged.record_hash = logged.record_hash
    left anti join rejected
        on staged.record_hash = rejected.record_hash
    {%- if erased_key %}
    left anti join erased
        on
            staged.key_hash = erased.key_hash
            and loads.load_position <= erased.up_to
    {%- endif %}
    where staged.change_oper = 'L'
),
{%- endif %}

wrong_loads as (
    select
        case
            when loads.load_id is null
                then 'the log has no row of this load'
            when loads.markers <> 1
                then 'the log has ' || loads.markers || ' markers of this load'
            else
                'the log has ' || loads.loaded_rows || ' rows of this load, its marker says '
                || loads.announced_rows
        end as what_is_wrong,
        cast(null as string) as change_seq,
        'L' as change_oper,
        cast(null as bigint) as record_hash,
        coalesce(loads.load_id, staged_loads.load_id) as load_id
    from loads
    full outer join staged_loads
        on loads.load_id = staged_loads.load_id
    where
        loads.load_id is null
        or loads.markers <> 1
        or loads.loaded_rows <> loads.announced_rows
)

select *
from lost
union all
select *
from repeated
{%- if has_feed_loads and not is_known %}
union all
select *
from lost_load_rows
{%- endif %}
union all
select *
from wrong_loads
{%- if not_decoded %}
union all
{{ not_decoded }}
{%- endif %}
{% endtest %}
