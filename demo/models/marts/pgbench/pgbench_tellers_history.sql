{{ history(ref('pgbench_tellers_changes')) }}
