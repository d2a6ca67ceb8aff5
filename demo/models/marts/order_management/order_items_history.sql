{{ history(ref('order_items_changes')) }}
