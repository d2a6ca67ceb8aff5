{{ field_changes(ref('order_items_changes')) }}
