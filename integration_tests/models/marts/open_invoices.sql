-- A model of the project's own, which the package leaves alone.
{{ config(materialized='table') }}
select
    status,
    count(*) as invoices
from {{ ref('invoices_current') }}
group by status
