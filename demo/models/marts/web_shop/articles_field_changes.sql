{{ field_changes(
    ref('articles_changes'),
    history=ref('articles_history')
) }}
