-- The macro qlik_change_operation and the seed qlik_operations name the same
-- letters; letters that the seed does not list are unknown to the macro.
with

operations as (
    select * from {{ ref('qlik_operations') }}
),

cases as (
    select
        change_oper,
        operation,
        contract_change_oper
    from operations
    union all
    -- lower case, another letter, none at all: unknown, so rejected
    select
        letter as change_oper,
        null as operation,
        null as contract_change_oper
    from values ('i'), ('X'), (''), (null) as letters (letter)
),

decoded as (
    select
        *,
        {{ qlik_change_operation('change_oper', 'operation') | indent(8) }}
            as with_operation,
        {{ qlik_change_operation('change_oper') | indent(8) }}
            as without_operation
    from cases
)

-- without the column `operation` a truncate is not recognised
select * from decoded
where
    not (with_operation <=> contract_change_oper)
    or not (
        without_operation <=> nullif(contract_change_oper, 'T')
    )
