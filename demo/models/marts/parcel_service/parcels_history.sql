{{ history(ref('parcels_changes')) }}
