-- The invariant of TPC-B: at the end of each transaction, the sums of the
-- balances of accounts, tellers and branches and of all payments are equal.
-- They start equal, so each transaction must change all four by one amount.
-- The first 16 digits of a position are the transaction's own.
with

steps as (
    select
        'accounts' as balance_of,
        left(valid_from_seq, 16) as place,
        abalance as step
    from {{ ref('pgbench_accounts_history') }}
    union all
    select
        'accounts' as balance_of,
        left(valid_to_seq, 16) as place,
        -abalance as step
    from {{ ref('pgbench_accounts_history') }}
    where valid_to_seq is not null
    union all
    select
        'tellers' as balance_of,
        left(valid_from_seq, 16) as place,
        tbalance as step
    from {{ ref('pgbench_tellers_history') }}
    union all
    select
        'tellers' as balance_of,
        left(valid_to_seq, 16) as place,
        -tbalance as step
    from {{ ref('pgbench_tellers_history') }}
    where valid_to_seq is not null
    union all
    select
        'branches' as balance_of,
        left(valid_from_seq, 16) as place,
        bbalance as step
    from {{ ref('pgbench_branches_history') }}
    union all
    select
        'branches' as balance_of,
        left(valid_to_seq, 16) as place,
        -bbalance as step
    from {{ ref('pgbench_branches_history') }}
    where valid_to_seq is not null
    union all
    select
        'payments' as balance_of,
        left(valid_from_seq, 16) as place,
        delta as step
    from {{ ref('pgbench_history_history') }}
    union all
    select
        'payments' as balance_of,
        left(valid_to_seq, 16) as place,
        -delta as step
    from {{ ref('pgbench_history_history') }}
    where valid_to_seq is not null
),

per_transaction as (
    select
        place,
        sum(if(balance_of = 'accounts', step, 0)) as of_accounts,
        sum(if(balance_of = 'tellers', step, 0)) as of_tellers,
        sum(if(balance_of = 'branches', step, 0)) as of_branches,
        sum(if(balance_of = 'payments', step, 0)) as of_payments
    from steps
    group by place
)

select *
from per_transaction
where
    of_accounts <> of_payments
    or of_tellers <> of_payments
    or of_branches <> of_payments
