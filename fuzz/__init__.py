"""Fuzz tests: random bad tables for random methods, which must return a result or a clear error."""
