{{ history(ref('operators_changes')) }}
