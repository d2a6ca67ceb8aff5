-- The raw table holds the messages of all topics.
select *
from {{ source('demo_postgres', 'messages') }}
where topic = 'bank.transaction'
