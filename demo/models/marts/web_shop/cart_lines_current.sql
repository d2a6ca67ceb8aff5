{{ current(ref('cart_lines_history')) }}
