{{ config(materialized='table') }}
select
    status,
    count(*) as invoices
from {{ ref('invoices_current') }}
group by status
