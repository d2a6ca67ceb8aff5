{{ field_changes(ref('operators_changes')) }}
