{{ history(ref('cart_lines_changes')) }}
