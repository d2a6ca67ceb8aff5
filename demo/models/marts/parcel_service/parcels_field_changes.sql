{{ field_changes(ref('parcels_changes')) }}
