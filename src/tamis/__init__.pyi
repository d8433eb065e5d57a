from tamis._version import __version__
from tamis.contract.costs import FeatureCosts
from tamis.recipes import recipe, select
from tamis.table import inspect, read

__all__ = ["FeatureCosts", "__version__", "inspect", "read", "recipe", "select"]
