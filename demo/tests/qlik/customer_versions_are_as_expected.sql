-- The history of five of the demo's customers, against the seed in which it is
-- written down by hand: 11 and 12 change their number, 13 and 14 swap theirs,
-- 16 gets a note (a large object that later changes leave out) and moves house.
-- It checks nothing when the demo was landed in another size or with another
-- seed: then the commit time of the first of these changes is another one.
with

landed as (
    select count(*) > 0 as is_as_written_down
    from {{ source('demo_qlik', 'customers__ct') }}
    where header__change_seq like '2026030208381236%'
),

expected as (
    select
        customer_id,
        customer_number,
        city,
        -- a CSV file loses a blank at the end
        trim(remark_begins) as remark_begins,
        valid_from,
        valid_to,
        opened_by,
        -- an empty text in a seed becomes 'None' on Spark
        nullif(closed_by, 'None') as closed_by
    from {{ ref('expected_customer_versions') }}
),

actual as (
    select
        customer_id,
        customer_number,
        city,
        trim(left(notes, 3)) as remark_begins,
        valid_from,
        valid_to,
        opened_by,
        closed_by
    from {{ ref('customers_history') }}
    where customer_id in (11, 12, 13, 14, 16)
),

missing as (
    select * from expected
    except all
    select * from actual
),

surplus as (
    select * from actual
    except all
    select * from expected
),

differences as (
    select
        'missing' as what,
        customer_id,
        customer_number,
        city,
        remark_begins,
        valid_from,
        valid_to,
        opened_by,
        closed_by
    from missing
    union all
    select
        'surplus' as what,
        customer_id,
        customer_number,
        city,
        remark_begins,
        valid_from,
        valid_to,
        opened_by,
        closed_by
    from surplus
)

select differences.*
from differences
cross join landed
where landed.is_as_written_down
