"""Support vector machines for every C at once, and the C that is provably best."""
