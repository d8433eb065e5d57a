"""Engines: outputs of a fitted model as its columns change, for all columns together."""
