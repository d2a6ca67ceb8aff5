"""Writes of a run: the log's schema, its rows, the rejected records, progress."""
