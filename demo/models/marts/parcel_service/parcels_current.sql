{{ current(ref('parcels_history')) }}
