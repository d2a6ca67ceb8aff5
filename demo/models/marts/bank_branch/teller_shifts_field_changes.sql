{{ field_changes(ref('teller_shifts_changes')) }}
