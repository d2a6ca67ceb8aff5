{{ stage_change_feed('demo_mariadb', 'parcels') }}
