"""A schema of raw tables: its tables, read through Spark, and what tells a Qlik change table."""
