"""Solver that follows the optimum of a quadratic programme while the parameter lambda changes."""
