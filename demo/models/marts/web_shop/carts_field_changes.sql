{{ field_changes(ref('carts_changes')) }}
