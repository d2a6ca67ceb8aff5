{{ current(ref('deliveries_history')) }}
