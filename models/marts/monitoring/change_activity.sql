{{ change_activity([
    'customers',
    'products',
    'orders',
    'order_items',
    'shipments',
]) }}
