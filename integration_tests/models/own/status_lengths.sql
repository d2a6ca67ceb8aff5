{{ config(materialized='table', file_format='parquet') }}
select
    status,
    length(status) as letters
from {{ ref('statuses') }}
