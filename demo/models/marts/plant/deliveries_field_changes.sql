{{ field_changes(
    ref('deliveries_changes'),
    history=ref('deliveries_history')
) }}
