"""Densities: Parzen windows, reduced sets, and counts of columns cut into levels."""
