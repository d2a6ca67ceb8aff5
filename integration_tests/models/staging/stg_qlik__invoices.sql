{{ afterimage.stage_qlik_change_table('sales', 'invoices__ct', base='invoices') }}
