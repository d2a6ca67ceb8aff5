{#
    Materialization of a `temporal_join` as a table that each run brings up to date:

        {{ config(materialized='joined_history') }}
        select * from {{ temporal_join(base=ref('orders_history'), joins=[...]) }}

    A run reads from the feed of each side which of its keys changed, and computes the rows of these keys of the base again. All
    histories need `feed=true`; if one gains a column, the table is rebuilt. How far the feeds were read is in the progress table; a
    run that was killed is repeated.
#}
{% materialization joined_history, adapter='spark' %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set join = adapter.afterimage.take_join(model.unique_id) -%}
    {%- if join is none -%}
        {{ exceptions.raise_compiler_error(
            "`joined_history`: " ~ model.name ~ " calls no `temporal_join`. Nothing was written. Fix: select from one"
            ~ " {{ afterimage.temporal_join(...) }}, or use another materialization."
        ) }}
    {%- endif -%}
    {%- do afterimage._check_joined_sides(join.sides) -%}
    {{ run_hooks(pre_hooks) }}

    {%- if existing is not none and existing.is_view -%}
        {%- do adapter.drop_relation(existing) -%}
        {%- set existing = none -%}
    {%- endif -%}
    {%- set name = afterimage._progress_name(target_relation) -%}
    {#- before the histories are read: what a feed gets meanwhile is read again by the next run -#}
    {%- set reached = afterimage._reached_in_feeds(join.sides) -%}
    {%- set state, seen = none, {} -%}
    {%- if existing is not none and not should_full_refresh() -%}
        {%- set state = adapter.afterimage.current_version(target_relation) -%}
        {%- set seen = adapter.afterimage.feeds_seen(afterimage._progress_relation(), target_relation, name, state) -%}
    {%- endif -%}
    {#- a history has gained a column, which its earlier versions have too -#}
    {%- if seen and seen != reached and get_columns_in_query(sql) != afterimage._raw_columns(target_relation) | map(attribute='name') | list -%}
        {%- set seen = {} -%}
    {%- endif -%}
    {%- if not adapter.afterimage.continues_feeds(seen, reached) -%}
        {%- do adapter.afterimage.create_table(
            target_relation, sql, afterimage._column_descriptions(), config.get('partition_by') or [],
            afterimage._table_properties('joined_history')
        ) -%}
        {%- call noop_statement('main', 'OK, built') -%}{{ sql }}{%- endcall -%}
    {%- elif seen == reached -%}
        {%- call noop_statement('main', 'OK, nothing new') -%}{%- endcall -%}
    {%- else -%}
        {%- set keys = adapter.afterimage.checkpoint(afterimage._keys_changed_in_feeds(join.sides, seen, target_relation)) -%}
        {%- set rows = afterimage._replaced_rows(target_relation, sql | replace(join.text, afterimage._join_of_keys(join, keys)), join.sides[0], keys) -%}
        {%- do adapter.afterimage.publish(target_relation, rows, join.sides[0].key, '', state, [keys]) -%}
        {%- call noop_statement('main', 'OK, published') -%}{{ rows }}{%- endcall -%}
    {%- endif -%}
    {%- if seen != reached -%}
        {%- do adapter.afterimage.record_feeds(afterimage._progress_relation(), target_relation, name, reached) -%}
        {%- do adapter.afterimage.compact_at_end(target_relation) if seen -%}
    {%- endif -%}

    {%- do afterimage._persist_descriptions(target_relation) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{# The last `feed_at` of each side's feed: {feed: time as text}. #}
{% macro _reached_in_feeds(sides) %}
    {%- set queries = [] -%}
    {%- for side in sides -%}
        {%- do afterimage._columns_of_feed('joined_history', side.relation) -%}
        {%- set feed = afterimage._feed_relation(side.relation) | string -%}
        {%- do queries.append("select " ~ afterimage._text(feed) ~ " as feed, cast(max(feed_at) as string) as reached from " ~ feed) -%}
    {%- endfor -%}
    {%- set reached = {} -%}
    {%- for row in run_query(queries | unique | join(' union all ')).rows -%}
        {%- do reached.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {{ return(reached) }}
{% endmacro %}


{#
    The keys of the base whose rows may differ: those in its own feed, and those that a changed key of a side matches, at any time. A side
    whose `on` has columns of a side before is looked up in the table as it is: a change of that other side names its keys itself.
#}
{% macro _keys_changed_in_feeds(sides, seen, target_relation) -%}
{%- set base = sides[0] -%}
{%- set of_sides = [] -%}
select
    {{ afterimage._listed(base.key, indent=4) }}
from {{ afterimage._feed_relation(base.relation) }}
where feed_at > timestamp '{{ seen[afterimage._feed_relation(base.relation) | string] }}'
{%- for side in sides[1:] %}
{%- set feed = afterimage._feed_relation(side.relation) %}
{%- set is_chained = side.on | select('in', of_sides) | list | length > 0 %}
{%- do of_sides.extend(side.output.values()) %}
union
select
    {{ afterimage._listed(base.key, prefix='versions.', indent=4) }}
from {{ target_relation if is_chained else base.relation }} as versions
left semi join {{ feed }} as changed
    on
        {%- for ours, theirs in side.on.items() %}
        versions.{{ afterimage._quoted(ours) }} = changed.{{ afterimage._quoted(theirs) }} and
        {%- endfor %}
        changed.feed_at > timestamp '{{ seen[feed | string] }}'
{%- endfor %}
{%- endmacro %}


{# The statement of a temporal join for some keys of its base. #}
{% macro _join_of_keys(join, keys) %}
    {%- set base = join.sides[0] -%}
    {%- set versions = "(select versions.* from " ~ base.relation ~ " as versions left semi join " ~ keys ~ " as changed on "
        ~ afterimage._equal(base.key, 'versions', 'changed', '=') | replace('\n', ' ') ~ ")" -%}
    {{ return(afterimage._temporal_join_sql(versions, join.sides, join.by_seq, join.why)) }}
{% endmacro %}


{# The rows of these keys, and the keys, whose earlier rows go. #}
{% macro _replaced_rows(target_relation, sql, base, keys) -%}
with

joined as (
    {{ sql }}
)

select
    *,
    'insert' as _write_action
from joined
union all
select
    {%- for column in afterimage._raw_columns(target_relation) %}
    {{ afterimage._quoted(column.name) if afterimage._same_name(column.name, base.key) is not none else 'null' }} as {{ afterimage._quoted(column.name) }},
    {%- endfor %}
    'delete' as _write_action
from {{ keys }}
{%- endmacro %}
