-- The invariant of TPC-B, at each cut that a run has found.
with

cuts as (
    select distinct change_seq
    from {{ ref('afterimage_cuts') }}
),

balances as (
    select
        cuts.change_seq,
        'accounts' as balance_of,
        coalesce(sum(versions.abalance), 0) as balance
    from cuts
    left join {{ ref('pgbench_accounts_history') }} as versions
        on
            cuts.change_seq >= versions.valid_from_seq
            and (
                cuts.change_seq < versions.valid_to_seq
                or versions.valid_to_seq is null
            )
    group by cuts.change_seq
    union all
    select
        cuts.change_seq,
        'tellers' as balance_of,
        coalesce(sum(versions.tbalance), 0) as balance
    from cuts
    left join {{ ref('pgbench_tellers_history') }} as versions
        on
            cuts.change_seq >= versions.valid_from_seq
            and (
                cuts.change_seq < versions.valid_to_seq
                or versions.valid_to_seq is null
            )
    group by cuts.change_seq
    union all
    select
        cuts.change_seq,
        'branches' as balance_of,
        coalesce(sum(versions.bbalance), 0) as balance
    from cuts
    left join {{ ref('pgbench_branches_history') }} as versions
        on
            cuts.change_seq >= versions.valid_from_seq
            and (
                cuts.change_seq < versions.valid_to_seq
                or versions.valid_to_seq is null
            )
    group by cuts.change_seq
    union all
    select
        cuts.change_seq,
        'payments' as balance_of,
        coalesce(sum(versions.delta), 0) as balance
    from cuts
    left join {{ ref('pgbench_history_history') }} as versions
        on
            cuts.change_seq >= versions.valid_from_seq
            and (
                cuts.change_seq < versions.valid_to_seq
                or versions.valid_to_seq is null
            )
    group by cuts.change_seq
)

select
    change_seq,
    map_from_entries(collect_list(struct(balance_of, balance))) as balances
from balances
group by change_seq
having count(distinct balance) > 1
