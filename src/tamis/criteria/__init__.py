"""How good: judges of features."""

from tamis.criteria.scatter import Divergence, Scatter
from tamis.criteria.univariate import (
    Correlation,
    DiscriminantRatio,
    FisherScore,
    KolmogorovSmirnov,
    MutualInformation,
    PValue,
)
from tamis.criteria.wrappers import Penalised, Remembered, Scored

__all__ = [
    "Correlation",
    "DiscriminantRatio",
    "Divergence",
    "FisherScore",
    "KolmogorovSmirnov",
    "MutualInformation",
    "PValue",
    "Penalised",
    "Remembered",
    "Scatter",
    "Scored",
]
