{{ history(ref('customers_changes')) }}
