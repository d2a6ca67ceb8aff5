{#
    The cut that Debezium's transaction topic proves: the last change before the first transaction of which some table lacks
    changes. None if it has not moved.

    The END message of a transaction says how many events each table has of it, and the messages are in the order of commits.
    A change of a key is two events and one row of the log. Changes before the first transaction of the topic count as landed.
    A rejected record is in no log, so it holds the cut back until it is replayed.

    Arguments:
      tables        as `_tasks_with_cuts` gives them
      transactions  the landed messages of the topic
      last          the last cut of the task: {change_seq, transaction_id}, or {}
#}
{% macro _cut_by_transactions(tables, transactions, last) %}
    {%- set row = run_query(afterimage._proven_transactions_sql(tables, transactions, last)).rows[0] -%}
    {%- if row[3] is not none -%}
        {{ exceptions.raise_compiler_error(
            "`cuts` of " ~ model.name ~ ": " ~ row[3] ~ ", so the topic " ~ transactions ~ " proves nothing of this table. Its"
            ~ " `data_collections` are matched with dbt's source tables by the last part of the name: name the source table as the table"
            ~ " is named in the database (`identifier` may differ), or leave `transactions` out and set `landing_delay`."
        ) }}
    {%- endif -%}
    {%- if row[0] is none and last -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return({
        'change_seq': row[0] or adapter.afterimage.first_position(tables[0].settings),
        'complete_until': none,
        'proof': 'transactions',
        'held_back_by': row[2],
        'transaction_id': row[1],
    }) }}
{% endmacro %}


{# One row: the cut, its transaction, the table that lacks changes of the next one, and a table that no transaction names. #}
{% macro _proven_transactions_sql(tables, transactions, last) -%}
with

messages as (
    select
        `offset` as place,
        coalesce(
            get_json_object(cast(value as string), '$.payload'),
            cast(value as string)
        ) as content
    from {{ transactions }}
    where value is not null
),

ends as (
    select
        min(place) as place,
        get_json_object(content, '$.id') as transaction_id,
        any_value(get_json_object(content, '$.data_collections')) as data_collections
    from messages
    where get_json_object(content, '$.status') = 'END'
    group by get_json_object(content, '$.id')
),

new_ends as (
    select
        place,
        transaction_id,
        explode(
            from_json(data_collections, 'array<struct<data_collection string, event_count bigint>>')
        ) as named
    from ends
    {%- if last.get('transaction_id') %}
    where place > (select max(place) from ends where transaction_id = {{ afterimage._text(last.transaction_id) }})
    {%- endif %}
),

-- PostgreSQL's id has the place of the commit behind a colon, which the id in a change lacks
expected as (
    select
        place,
        transaction_id,
        explode(
            array_distinct(array(transaction_id, substring_index(transaction_id, ':', 1)))
        ) as id_in_changes,
        table_name,
        events
    from (
        select
            place,
            transaction_id,
            lower(element_at(split(named.data_collection, '[.]'), -1)) as table_name,
            sum(named.event_count) as events
        from new_ends
        group by place, transaction_id, lower(element_at(split(named.data_collection, '[.]'), -1))
    ) as counted
),

changes as (
    {%- for table in tables %}
    select
        {{ afterimage._text(table.node.name) }} as log_name,
        {{ afterimage._text(afterimage._name_in_database(table.settings)) }} as table_name,
        transaction_id,
        1 + int({{ afterimage._is_key_change(table.settings.key, 'changes') }}) as events,
        change_seq
    from {{ table.changes }} as changes
    where
        change_seq > {{ afterimage._text(last.get('change_seq') or '') }}
        and transaction_id is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

landed as (
    select
        log_name,
        table_name,
        transaction_id,
        sum(events) as events,
        max(change_seq) as change_seq
    from changes
    group by log_name, table_name, transaction_id
),

checked as (
    select
        expected.place,
        expected.transaction_id,
        expected.table_name,
        max(landed.change_seq) as change_seq,
        coalesce(sum(landed.events), 0) >= max(expected.events) as is_complete
    from expected
    left join landed
        on
            expected.table_name = landed.table_name
            and expected.id_in_changes = landed.transaction_id
    where expected.table_name in (
        {%- for table in tables -%}
        {{ afterimage._text(afterimage._name_in_database(table.settings)) }}{{ ', ' if not loop.last }}
        {%- endfor -%}
    )
    group by expected.place, expected.transaction_id, expected.table_name
),

unnamed as (
    select
        any_value(
            concat(
                landed.log_name,
                ' has changes of the transaction ',
                ends.transaction_id,
                ', whose END does not name ',
                landed.table_name
            )
        ) as finding
    from landed
    inner join (select distinct transaction_id, id_in_changes from expected) as ends
        on landed.transaction_id = ends.id_in_changes
    left anti join expected
        on
            ends.transaction_id = expected.transaction_id
            and landed.table_name = expected.table_name
),

incomplete as (
    select
        min(place) as place,
        min_by(table_name, place) as table_name
    from checked
    where not is_complete
)

select
    max(checked.change_seq) as change_seq,
    max_by(checked.transaction_id, checked.place) as transaction_id,
    any_value(incomplete.table_name) as held_back_by,
    any_value(unnamed.finding) as finding
from incomplete
cross join unnamed
left join checked
    on
        incomplete.place is null
        or checked.place < incomplete.place
{%- endmacro %}


{# The name that Debezium gives a source table, without its schema, in lower case. #}
{% macro _name_in_database(settings) %}
    {{- return(settings.source_table.split('.')[-1] | lower) -}}
{% endmacro %}
