{{ history(ref('orders_changes'), feed=true) }}
