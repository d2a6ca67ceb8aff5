{{ field_changes(
    ref('pgbench_tellers_changes'),
    history=ref('pgbench_tellers_history'),
) }}
