{{ current(ref('clients_history')) }}
