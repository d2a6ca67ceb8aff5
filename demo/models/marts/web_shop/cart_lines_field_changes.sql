{{ field_changes(ref('cart_lines_changes')) }}
