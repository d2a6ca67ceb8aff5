{{ afterimage.field_changes(ref('invoices_changes')) }}
