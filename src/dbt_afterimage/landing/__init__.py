"""Lands change tables of sources that nothing else lands: extraction over JDBC through Spark."""
