"""A real MariaDB, which Debezium reads."""
