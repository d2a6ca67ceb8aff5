{{ field_changes(ref('shoppers_changes')) }}
