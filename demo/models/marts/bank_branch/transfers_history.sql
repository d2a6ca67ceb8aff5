{{ history(ref('transfers_changes')) }}
