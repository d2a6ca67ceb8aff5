{{ stage_change_feed('demo_postgres', 'pgbench_history') }}
