"""What dbt-spark lacks for this project: Python models in the session, a quiet start, settings."""
