{{ stage_qlik_messages(
    'demo_shop',
    'carts',
    messages=ref('stg_qlik_messages__shop_log'),
) }}
