"""Readers of the tree models of other libraries, which are not imported."""
