{{ current(ref('teller_shifts_history')) }}
