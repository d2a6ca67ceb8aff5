{{ current(ref('pgbench_accounts_history')) }}
