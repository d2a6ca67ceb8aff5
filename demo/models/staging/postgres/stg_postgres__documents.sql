{{ stage_change_feed('demo_postgres', 'documents') }}
