{{ soliddb_ddl_events('demo_soliddb', log=ref('stg_soliddb__log')) }}
