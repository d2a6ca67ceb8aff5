"""The demo's data: a small order-management database and the raw tables its replication leaves.

`generate.generate` makes the data in memory, `land.land` writes it into Spark tables.
Nothing here is needed to run the project on real change tables.
"""
