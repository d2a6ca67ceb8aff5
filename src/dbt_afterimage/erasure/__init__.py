"""Erasure of a person's data: in every table that afterimage writes, and in their old states."""
