{{ current(ref('customers_history')) }}
