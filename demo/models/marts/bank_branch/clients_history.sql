{{ history(ref('clients_changes')) }}
