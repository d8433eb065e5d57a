"""Charts as Vega-Lite specifications; :mod:`tamis.plot` has the public functions."""
