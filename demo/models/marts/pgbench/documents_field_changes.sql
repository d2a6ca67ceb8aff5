{{ field_changes(
    ref('documents_changes'),
    history=ref('documents_history'),
) }}
