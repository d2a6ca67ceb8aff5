{{ current(ref('transfers_history')) }}
