"""What dbt-spark lacks for this project: Python models in the live session, a quiet start, settings."""
