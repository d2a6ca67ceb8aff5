{{ current(ref('pgbench_tellers_history')) }}
