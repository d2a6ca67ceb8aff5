{% snapshot status_versions %}
{{
    config(
        unique_key='status', strategy='check', check_cols=['is_final'],
        file_format=target.name if target.name == 'delta' else 'iceberg',
    )
}}
select * from {{ ref('statuses') }}
{% endsnapshot %}
