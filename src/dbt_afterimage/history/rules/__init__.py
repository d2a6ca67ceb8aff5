"""The rules of history (docs/guarantees.md), a module per group; every function is one transform.

docs/internals/history.md says which module has which rule.
"""
