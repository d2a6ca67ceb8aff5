"""SCD2 versions of a table's rows from its change log.

Everything here maps DataFrames to DataFrames: it imports nothing of dbt, starts no Spark job of its
own and writes nothing.
"""
