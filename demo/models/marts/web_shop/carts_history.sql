{{ history(ref('carts_changes')) }}
