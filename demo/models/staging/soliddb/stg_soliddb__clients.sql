{{ stage_soliddb_table(
    'demo_soliddb',
    'clients',
    log=ref('stg_soliddb__log'),
    base='clients_base',
) }}
