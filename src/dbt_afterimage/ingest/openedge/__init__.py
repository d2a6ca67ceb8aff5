"""Extracts OpenEdge's tracking and change tables over JDBC."""
