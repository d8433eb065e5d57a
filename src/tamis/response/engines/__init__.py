"""Engines: outputs of a fitted model with perturbed columns, for all columns together."""
