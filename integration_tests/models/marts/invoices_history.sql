{{ afterimage.history(ref('invoices_changes')) }}
