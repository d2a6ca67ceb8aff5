{{ stage_qlik_change_table(
    'demo_qlik', 'order_items__ct', base='order_items'
) }}
