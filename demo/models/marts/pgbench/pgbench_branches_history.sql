{{ history(ref('pgbench_branches_changes')) }}
