{{ history(ref('documents_changes')) }}
