{{ history(ref('products_changes')) }}
