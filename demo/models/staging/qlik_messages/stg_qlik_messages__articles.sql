{{ stage_qlik_messages(
    'demo_shop',
    'articles',
    messages=ref('stg_qlik_messages__shop_log'),
) }}
