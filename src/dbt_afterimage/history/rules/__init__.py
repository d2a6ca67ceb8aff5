"""The rules of history (docs/glossary.md), a module per group; every function is one transform."""
