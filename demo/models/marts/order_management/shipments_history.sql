{{ history(ref('shipments_changes')) }}
