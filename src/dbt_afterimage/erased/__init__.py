"""Erased data does not come back: the list of erasures, applied to all that a run reads."""
