{{ history(ref('pgbench_accounts_changes')) }}
