{{ current(ref('pgbench_branches_history')) }}
