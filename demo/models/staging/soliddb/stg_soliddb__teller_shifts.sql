{{ stage_soliddb_table(
    'demo_soliddb',
    'teller_shifts',
    log=ref('stg_soliddb__log'),
) }}
