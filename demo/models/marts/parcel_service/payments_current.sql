{{ current(ref('payments_history')) }}
