"""Late changes: which keys are built again, from where, and their versions."""
