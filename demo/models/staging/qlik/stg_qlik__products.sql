{{ stage_qlik_change_table('demo_qlik', 'products__ct', base='products') }}
