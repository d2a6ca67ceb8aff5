{{ history(ref('payments_changes')) }}
