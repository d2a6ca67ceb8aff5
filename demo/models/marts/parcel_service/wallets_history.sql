{{ history(ref('wallets_changes')) }}
