"""Qlik messages, as Kafka and similar brokers deliver them: their forms, schemas and full loads.

Sources of all facts, unless a comment says otherwise: the vendor's page "Metadata and data
messages", and messages that were captured.
"""
