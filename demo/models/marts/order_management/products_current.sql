{{ current(ref('products_history')) }}
