-- After a landing, the current rows are those of the database, column by column.
{% set keys = {
    'pgbench_branches': ['bid', 'bbalance', 'filler'],
    'pgbench_tellers': ['tid', 'bid', 'tbalance', 'filler'],
    'pgbench_accounts': ['aid', 'bid', 'abalance', 'filler'],
    'pgbench_history': ['id', 'tid', 'bid', 'aid', 'delta', 'mtime', 'filler'],
    'documents': [
        'id', 'title', 'body', 'price', 'published', 'edited', 'read_at', 'is_public', 'cover', 'reference', 'properties', 'tags', 'note',
    ],
} %}
with

{% for table, columns in keys.items() %}
{{ table }}_differences as (
    (
        select {{ columns | join(', ') }} from {{ ref(table ~ '_current') }}
        except all
        select {{ columns | join(', ') }} from {{ source('demo_postgres_state', table) }}
    )
    union all
    (
        select {{ columns | join(', ') }} from {{ source('demo_postgres_state', table) }}
        except all
        select {{ columns | join(', ') }} from {{ ref(table ~ '_current') }}
    )
),

{% endfor %}
final as (
    {% for table, columns in keys.items() %}
    select
        '{{ table }}' as table_name,
        {{ columns[0] }} as key
    from {{ table }}_differences
    {{ 'union all' if not loop.last }}
    {% endfor %}
)

select * from final
