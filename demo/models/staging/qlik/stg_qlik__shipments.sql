{{ stage_qlik_change_table('demo_qlik', 'shipments__ct', base='shipments') }}
