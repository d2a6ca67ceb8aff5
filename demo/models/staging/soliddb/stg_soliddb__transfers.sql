{{ stage_soliddb_table(
    'demo_soliddb',
    'transfers',
    log=ref('stg_soliddb__log'),
) }}
