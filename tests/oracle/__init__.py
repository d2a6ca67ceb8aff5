"""A second, simple implementation of the change log, the history and what follows from it.

Pure Python, in memory, one change at a time; it shares no code with the product, so that an error
would have to be made twice to stay unseen. Speed does not matter here, being obviously right does.

- `pairing`: contract rows of staging -> change log, rejected, pending
- `history`: change log -> version rows (and the data model that all of them use)
- `current`, `field_changes`: what is derived from history and log
- `database`: a simulated source table that writes a change log and knows the truth
"""
