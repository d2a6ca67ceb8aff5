-- At the end of time the open versions are valid, and nothing else is.
with

at_the_end as (
    select
        order_id,
        valid_from_seq
    from {{ as_of(ref('orders_history'), '9999-12-31') | indent }} as orders
),

current_rows as (
    select
        order_id,
        valid_from_seq
    from {{ ref('orders_current') }}
),

missing as (
    select * from current_rows
    except all
    select * from at_the_end
),

surplus as (
    select * from at_the_end
    except all
    select * from current_rows
)

select
    'missing' as what,
    order_id,
    valid_from_seq
from missing
union all
select
    'surplus' as what,
    order_id,
    valid_from_seq
from surplus
