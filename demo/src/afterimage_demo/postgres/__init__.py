"""The demo of Debezium: a real PostgreSQL, read by a real Debezium. Nothing in it is simulated."""
