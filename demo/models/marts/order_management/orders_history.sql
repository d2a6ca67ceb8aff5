{{ history(ref('orders_changes')) }}
