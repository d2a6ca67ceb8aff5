{{ cuts(transactions={'bank': ref('stg_postgres__transactions')}) }}
