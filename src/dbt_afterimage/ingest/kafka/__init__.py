"""Lands the messages of Kafka topics in a raw table, each of them once."""
