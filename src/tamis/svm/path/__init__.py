"""Solver that follows the optimum of a quadratic programme while its parameter lambda changes."""
