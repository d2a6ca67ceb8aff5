{{ field_changes(ref('payments_changes')) }}
