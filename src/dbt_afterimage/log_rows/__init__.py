"""Conditions on rows of a change log, and their profiles; for the log itself and its readers."""
