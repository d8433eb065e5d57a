"""Readers of the trees of other libraries, none of which is imported."""
