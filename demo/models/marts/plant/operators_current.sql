{{ current(ref('operators_history')) }}
