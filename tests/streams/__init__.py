"""Tables of random streams: many small databases in one table, and what the oracle makes of each.

- `shapes`: what the tables have and do
- `tables`: the streams of a shape as change log rows, and the rows expected of them
- `selection`: the shapes and numbers of streams that the options of pytest select
- `history_table`: the log and settings of a shape, and the history expected of it
- `rule_counts`: which rules of history the streams exercise
- `comparison`: compares rows stream by stream
"""
