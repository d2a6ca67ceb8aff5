-- The invariant of TPC-B: at the end of each transaction, the sums of the balances of accounts, tellers and branches
-- and of all payments are equal. They start equal, so each transaction must change all four by the same amount.
-- The first 16 digits of a position are the transaction's own.
with

steps as (
    {% for table, balance in {
        'pgbench_accounts': 'abalance', 'pgbench_tellers': 'tbalance', 'pgbench_branches': 'bbalance', 'pgbench_history': 'delta',
    }.items() %}
    select
        '{{ table }}' as table_name,
        left(valid_from_seq, 16) as transaction_place,
        {{ balance }} as amount
    from {{ ref(table ~ '_history') }}
    union all
    select
        '{{ table }}' as table_name,
        left(valid_to_seq, 16) as transaction_place,
        -{{ balance }} as amount
    from {{ ref(table ~ '_history') }}
    where valid_to_seq is not null
    {{ 'union all' if not loop.last }}
    {% endfor %}
),

transactions as (
    select
        transaction_place,
        sum(if(table_name = 'pgbench_accounts', amount, 0)) as of_accounts,
        sum(if(table_name = 'pgbench_tellers', amount, 0)) as of_tellers,
        sum(if(table_name = 'pgbench_branches', amount, 0)) as of_branches,
        sum(if(table_name = 'pgbench_history', amount, 0)) as of_payments
    from steps
    group by transaction_place
)

select *
from transactions
where
    of_accounts <> of_payments
    or of_tellers <> of_payments
    or of_branches <> of_payments
