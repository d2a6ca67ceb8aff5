{{ soliddb_log_activity('demo_soliddb') }}
