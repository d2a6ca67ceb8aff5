-- The invariant of TPC-B, at each cut that a run has found.
with

cuts as (
    select distinct change_seq
    from {{ ref('afterimage_cuts') }}
),

versions as (
    select
        'accounts' as balance_of,
        abalance as balance,
        valid_from_seq,
        valid_to_seq
    from {{ ref('pgbench_accounts_history') }}
    union all
    select
        'tellers' as balance_of,
        tbalance as balance,
        valid_from_seq,
        valid_to_seq
    from {{ ref('pgbench_tellers_history') }}
    union all
    select
        'branches' as balance_of,
        bbalance as balance,
        valid_from_seq,
        valid_to_seq
    from {{ ref('pgbench_branches_history') }}
    union all
    select
        'payments' as balance_of,
        delta as balance,
        valid_from_seq,
        valid_to_seq
    from {{ ref('pgbench_history_history') }}
),

valid_at_cut as (
    select
        cuts.change_seq,
        versions.balance_of,
        versions.balance
    from cuts
    inner join versions
        on
            cuts.change_seq >= versions.valid_from_seq
            and (
                cuts.change_seq < versions.valid_to_seq
                or versions.valid_to_seq is null
            )
),

per_cut as (
    select
        change_seq,
        sum(if(balance_of = 'accounts', balance, 0)) as of_accounts,
        sum(if(balance_of = 'tellers', balance, 0)) as of_tellers,
        sum(if(balance_of = 'branches', balance, 0)) as of_branches,
        sum(if(balance_of = 'payments', balance, 0)) as of_payments
    from valid_at_cut
    group by change_seq
)

select *
from per_cut
where
    of_accounts <> of_payments
    or of_tellers <> of_payments
    or of_branches <> of_payments
