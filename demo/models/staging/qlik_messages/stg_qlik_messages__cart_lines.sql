{{ stage_qlik_messages(
    'demo_checkout',
    'cart_lines',
    messages=ref('stg_qlik_messages__checkout_log'),
) }}
