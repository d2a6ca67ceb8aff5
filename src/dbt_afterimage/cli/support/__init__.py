"""Shared by several commands: the session, the warehouse, dbt runs and files of a project."""
