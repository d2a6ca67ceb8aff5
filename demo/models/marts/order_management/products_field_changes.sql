{{ field_changes(ref('products_changes'), history=ref('products_history')) }}
