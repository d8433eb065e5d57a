"""Loops that numba compiles, one module per topic.

Loading numba takes longer than evaluating most criteria, so these modules are imported lazily.
:mod:`tamis.compiled.thresholds` does not need numba. It holds the problem sizes from which a
compiled loop is faster than numpy. A compiled loop returns the same result as the numpy code that
it replaces.
"""
