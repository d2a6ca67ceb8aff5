"""Extends dbt-spark for this project: Python models in the session, a quiet start, settings."""
