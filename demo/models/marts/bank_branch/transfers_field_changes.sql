{{ field_changes(ref('transfers_changes')) }}
