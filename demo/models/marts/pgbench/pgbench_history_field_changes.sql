{{ field_changes(
    ref('pgbench_history_changes'),
    history=ref('pgbench_history_history'),
) }}
