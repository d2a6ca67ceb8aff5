{{ stage_qlik_change_table('demo_qlik', 'customers__ct', base='customers') }}
