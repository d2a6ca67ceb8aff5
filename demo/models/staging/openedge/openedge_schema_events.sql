{{ openedge_schema_events(
    'demo_openedge',
    'cdc_change_tracking',
    tables=['cdc_operators', 'cdc_deliveries', 'cdc_work_orders']
) }}
