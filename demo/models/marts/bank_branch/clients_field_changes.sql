{{ field_changes(ref('clients_changes')) }}
