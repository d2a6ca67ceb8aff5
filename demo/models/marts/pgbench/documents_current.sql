{{ current(ref('documents_history')) }}
