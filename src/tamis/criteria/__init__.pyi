from tamis.criteria.bounds import RadiusMargin, Span
from tamis.criteria.filters import CoxScore, Variance
from tamis.criteria.importances import Importances
from tamis.criteria.information import CIFE, CMIM, DISR, JMI, MIFS, MIFSU, MRMR, NMIFS
from tamis.criteria.kernel import HSIC
from tamis.criteria.kernel_machines import WeightNorm
from tamis.criteria.output_information import OutputInformation
from tamis.criteria.pair_scan import PairInformation, PairMRMR
from tamis.criteria.parzen import KwakInformation, ParzenInformation, ReducedParzenInformation
from tamis.criteria.posterior_sensitivity import PosteriorSensitivity
from tamis.criteria.reconstruction import ColumnSubset
from tamis.criteria.relief import Relief
from tamis.criteria.sensitivity import DensitySensitivity, ScoreSensitivity
from tamis.criteria.separability import Divergence, Scatter
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
from tamis.response.perturbations import Derivative, Marginal, Permutation, Removal, Zero
from tamis.response.tuners import TunedMLP, TunedSVC, TunedSVR
from tamis.svm.relative import RelativeSVC, RelativeSVR

__all__ = [  # noqa: RUF022 (plain alphabetical order)
    "CIFE",
    "CMIM",
    "ColumnSubset",
    "Correlation",
    "CoxScore",
    "CrossValidated",
    "DISR",
    "DensitySensitivity",
    "Derivative",
    "DiscriminantRatio",
    "Divergence",
    "FisherScore",
    "HSIC",
    "Importances",
    "JMI",
    "KolmogorovSmirnov",
    "KwakInformation",
    "MIFS",
    "MIFSU",
    "MRMR",
    "Marginal",
    "MutualInformation",
    "NMIFS",
    "OutputInformation",
    "PValue",
    "PairInformation",
    "PairMRMR",
    "ParzenInformation",
    "Penalised",
    "Permutation",
    "PosteriorSensitivity",
    "RadiusMargin",
    "ReducedParzenInformation",
    "RelativeSVC",
    "RelativeSVR",
    "Relief",
    "Remembered",
    "Removal",
    "Scatter",
    "ScoreSensitivity",
    "Scored",
    "Span",
    "TunedMLP",
    "TunedSVC",
    "TunedSVR",
    "Variance",
    "WeightNorm",
    "Zero",
]
