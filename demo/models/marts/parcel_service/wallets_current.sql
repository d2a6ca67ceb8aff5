{{ current(ref('wallets_history')) }}
