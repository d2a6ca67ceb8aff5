{#
    SQL: records of a raw table that a decoded log (messages, solidDB) lacks although it has later ones, with the columns of
    the CTE `lost` of the test `conserved`; '' if the tested change log reads the raw table itself.

    A decoded log knows rows of a full load of messages by ranges of offsets only. Once whole records were erased, what a
    decoded log lacks cannot be told from what was erased, and nothing is reported.

    while_landing: leave out what was landed after the last run that decoded records.
#}
{% macro _not_decoded(while_landing) %}
    {%- set ids = afterimage._upstream_ids(afterimage._tested_node()) -%}
    {%- set logs = graph.nodes.values() | selectattr('unique_id', 'in', ids)
        | selectattr('config.materialized', 'equalto', 'staging_log') | list -%}
    {%- if not logs -%}
        {{ return('') }}
    {%- endif -%}
    {%- set log = afterimage._relation_of(logs[0]) -%}
    {%- set source = graph.sources[logs[0].depends_on.nodes[0]] -%}
    {%- set raw = api.Relation.create(schema=source.schema, identifier=source.identifier) -%}
    {%- set query -%}
select
    'in the raw table but not decoded, at ' || {{ afterimage._decoded_place(raw) }}
    || '; run once with the var rebuild_changes' as what_is_wrong,
    cast(null as string) as change_seq,
    cast(null as string) as change_oper,
    cast(null as bigint) as record_hash,
    cast(null as string) as load_id
from {{ raw }} as landed
    {%- if afterimage._tested_settings().system == 'soliddb' %}
left anti join {{ log }} as decoded
    on {{ afterimage._decoded_place(raw) }} = decoded.log_address
where
    try_cast(landed.recid as int) in (1, 3, 4, 5, 6, 13)
    and {{ afterimage._decoded_place(raw) }} <= (
        select max(done.commit_address) from {{ log }} as done
    )
    {%- else %}
inner join (
    select
        topic,
        `partition`,
        max(coalesce(last_offset, offset)) as last_offset
    from {{ log }}
    group by topic, `partition`
) as done
    on
        landed.topic = done.topic
        and landed.`partition` = done.`partition`
        and landed.offset <= done.last_offset
left anti join {{ log }} as decoded
    on
        landed.topic = decoded.topic
        and landed.`partition` = decoded.`partition`
        and landed.offset = decoded.offset
        and decoded.kind in ('change', 'load', 'metadata', 'tombstone', 'rejected')
left anti join {{ log }} as loaded
    on
        landed.topic = loaded.topic
        and landed.`partition` = loaded.`partition`
        and landed.offset between loaded.offset and loaded.last_offset
        and loaded.kind = 'load_part'
where true
    {%- endif %}
    {%- if while_landing %}
    and landed.landed_at < (
        select max(newest.recorded_at) from {{ log }} as newest
    )
    {%- endif %}
    {%- if load_relation(afterimage._erasures_relation()) is not none %}
    and not exists (
        select 1
        from {{ afterimage._erasures_relation() }} as erasures
        where erasures.erased_columns is null
    )
    {%- endif %}
    {%- endset -%}
    {{ return(query) }}
{% endmacro %}


{# SQL: where a record of a raw table is, as text; for solidDB as its decoded log writes it. #}
{% macro _decoded_place(raw) %}
    {%- if afterimage._tested_settings().system != 'soliddb' -%}
        {{ return("landed.topic || '-' || landed.`partition` || ', offset ' || landed.offset") }}
    {%- endif -%}
    {%- for column in afterimage._raw_columns(raw) if column.name | lower == 'logaddr' and column.data_type == 'binary' -%}
        {{ return('hex(landed.logaddr)') }}
    {%- endfor -%}
    {{ return('upper(trim(landed.logaddr))') }}
{% endmacro %}
