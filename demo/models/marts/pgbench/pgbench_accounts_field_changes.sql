{{ field_changes(ref('pgbench_accounts_changes')) }}
