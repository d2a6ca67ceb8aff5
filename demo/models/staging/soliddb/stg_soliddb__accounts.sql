{{ stage_soliddb_table(
    'demo_soliddb',
    'accounts',
    log=ref('stg_soliddb__log'),
) }}
