{{ field_changes(ref('customers_changes')) }}
