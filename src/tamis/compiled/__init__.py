"""Every loop that numba compiles, one module a topic."""
