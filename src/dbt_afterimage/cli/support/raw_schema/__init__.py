"""A schema of raw tables: its tables, read through Spark, and Qlik change tables among them."""
