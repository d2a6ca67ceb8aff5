{{ history(ref('articles_changes')) }}
