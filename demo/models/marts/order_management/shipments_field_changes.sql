{{ field_changes(ref('shipments_changes')) }}
