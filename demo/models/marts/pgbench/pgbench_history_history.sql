{{ history(ref('pgbench_history_changes')) }}
