"""Validation functions of C, exact at every C: what they are made of and what is proved of them."""
