{{ history(ref('teller_shifts_changes')) }}
