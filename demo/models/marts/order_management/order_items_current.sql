{{ current(ref('order_items_history')) }}
