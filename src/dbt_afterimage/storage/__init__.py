"""One table on Iceberg or Delta: created, appended to, published, altered, compacted."""
