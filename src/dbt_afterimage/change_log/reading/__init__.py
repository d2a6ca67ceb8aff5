"""Versions of the raw tables, their new records, and the log rows to compare with."""
