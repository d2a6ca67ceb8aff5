-- The raw table holds the messages of all topics.
select
    offset,
    value
from {{ source('demo_postgres', 'messages') }}
where topic = 'bank.transaction'
