"""Benchmarks: what each step costs, compared with plain writes and other baselines."""
