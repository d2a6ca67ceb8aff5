{{ config(materialized='table') }}
select upper(status) as status_name
from {{ ref('statuses') }}
