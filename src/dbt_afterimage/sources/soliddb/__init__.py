"""solidDB's transaction log, SYS_LOG: its record ids, catalogue, framing and values.

Source of all facts: the page "Log reader" of the solidDB manual, unless a comment says otherwise.
The modules that run in Spark's workers import neither Spark nor dbt: `value_columns`, `framing`,
`values`, `records`, `arrow`.
"""
