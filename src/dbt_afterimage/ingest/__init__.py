"""Brings records of a source system into raw tables: messages of Kafka, tables of OpenEdge."""
