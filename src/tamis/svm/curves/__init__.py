"""Validation curves that are exact at every C: scores, errors, bounds and certificates."""
