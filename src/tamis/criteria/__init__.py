"""How good: judges of features."""

from tamis.criteria.bounds import RadiusMargin, Span
from tamis.criteria.importances import Importances
from tamis.criteria.margins import WeightNorm
from tamis.criteria.scatter import Divergence, Scatter
from tamis.criteria.univariate import (
    Correlation,
    DiscriminantRatio,
    FisherScore,
    KolmogorovSmirnov,
    MutualInformation,
    PValue,
)
from tamis.criteria.validation import CrossValidated
from tamis.criteria.wrappers import Penalised, Remembered, Scored

__all__ = [
    "Correlation",
    "CrossValidated",
    "DiscriminantRatio",
    "Divergence",
    "FisherScore",
    "Importances",
    "KolmogorovSmirnov",
    "MutualInformation",
    "PValue",
    "Penalised",
    "RadiusMargin",
    "Remembered",
    "Scatter",
    "Scored",
    "Span",
    "WeightNorm",
]
