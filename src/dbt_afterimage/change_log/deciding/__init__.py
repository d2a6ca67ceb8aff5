"""Decides on records: pairs, full loads, gaps, rejects, and the summary of a batch."""
