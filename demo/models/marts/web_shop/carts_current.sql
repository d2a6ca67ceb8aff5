{{ current(ref('carts_history')) }}
