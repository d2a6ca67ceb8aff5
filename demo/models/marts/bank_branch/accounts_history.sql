{{ history(ref('accounts_changes')) }}
