-- The macro openedge_change_operation and the seed openedge_operations name the
-- same letters; numbers that the seed does not list are unknown to the macro.
with

operations as (
    select
        operation,
        contract_change_oper
    from {{ ref('openedge_operations') }}
    union all
    select
        number as operation,
        null as contract_change_oper
    from values (-1), (0), (13), (null) as numbers (number)
),

decoded as (
    select
        operation,
        contract_change_oper,
        {{ openedge_change_operation('operation') | indent(8) }} as decoded_oper
    from operations
)

select * from decoded
where not (decoded_oper <=> contract_change_oper)
