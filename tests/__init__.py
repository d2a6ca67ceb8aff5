"""Tests of the project; a package so that `tests.oracle` can be imported from the project root."""
