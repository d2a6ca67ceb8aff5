{{ stage_qlik_change_table('demo_qlik', 'orders__ct', base='orders') }}
