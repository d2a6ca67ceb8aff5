{{ current(ref('shoppers_history')) }}
