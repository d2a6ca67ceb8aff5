{{ history(ref('deliveries_changes')) }}
