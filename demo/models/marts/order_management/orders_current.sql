{{ current(ref('orders_history')) }}
