-- Each payment updates two wallets once: the log of a wallet has an update for
-- each payment from it or to it, and the amounts of both have the same sum.
with

of_wallets as (
    select
        wallets.id,
        count(*) as changes_count,
        sum(wallets.balance - wallets.before.balance) as changes_sum
    from {{ ref('wallets_changes') }} as wallets
    where wallets.change_oper = 'U'
    group by wallets.id
),

sides as (
    select
        payer as id,
        -amount as amount
    from {{ ref('payments_current') }}
    union all
    select
        payee as id,
        amount
    from {{ ref('payments_current') }}
),

of_payments as (
    select
        id,
        count(*) as payments_count,
        sum(amount) as payments_sum
    from sides
    group by id
)

select
    of_wallets.id as wallet_id,
    of_payments.id as payments_of,
    of_wallets.changes_count,
    of_wallets.changes_sum,
    of_payments.payments_count,
    of_payments.payments_sum
from of_wallets
full outer join of_payments on of_wallets.id = of_payments.id
where
    of_wallets.changes_count is distinct from of_payments.payments_count
    or of_wallets.changes_sum is distinct from of_payments.payments_sum
