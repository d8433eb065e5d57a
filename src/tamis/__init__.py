"""tamis finds the features that matter and the hyper-parameters that are provably best."""

from importlib.metadata import version

__version__ = version("tamis")
__all__ = ["__version__"]
