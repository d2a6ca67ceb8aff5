{{ history(ref('shoppers_changes')) }}
