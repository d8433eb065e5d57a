"""Charts as Vega-Lite specifications. The public functions are in :mod:`tamis.plot`."""
