"""Densities: Parzen windows, reduced sets, and the quadratic program behind them."""
