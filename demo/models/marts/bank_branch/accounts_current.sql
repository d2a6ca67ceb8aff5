{{ current(ref('accounts_history')) }}
