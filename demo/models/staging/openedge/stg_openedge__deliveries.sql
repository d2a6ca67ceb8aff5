{{ stage_openedge(
    'demo_openedge',
    'cdc_deliveries',
    tracking='cdc_change_tracking',
    base='deliveries'
) }}
