{{ field_changes(ref('orders_changes')) }}
