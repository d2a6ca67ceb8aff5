{{ current(ref('shipments_history')) }}
