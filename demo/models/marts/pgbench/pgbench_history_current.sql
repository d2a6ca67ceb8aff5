{{ current(ref('pgbench_history_history')) }}
