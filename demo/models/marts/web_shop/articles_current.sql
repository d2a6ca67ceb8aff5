{{ current(ref('articles_history')) }}
