{{ afterimage.current(ref('invoices_history')) }}
