{{ field_changes(ref('wallets_changes')) }}
