{{ stage_openedge(
    'demo_openedge',
    'cdc_operators',
    tracking='cdc_change_tracking',
    base='operators'
) }}
