{{ field_changes(ref('accounts_changes')) }}
