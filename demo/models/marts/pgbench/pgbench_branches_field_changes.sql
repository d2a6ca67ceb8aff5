{{ field_changes(
    ref('pgbench_branches_changes'),
    history=ref('pgbench_branches_history'),
) }}
