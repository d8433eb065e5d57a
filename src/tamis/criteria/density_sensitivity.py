"""How far predictive densities of a regression move when a column is perturbed: SD-L and SD-G."""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import Constraints, one_of
from tamis.criteria.sensitivity import Sensitivity
from tamis.exceptions import DegenerateData, IncompatibleCriterion
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import NOISES, DensityOutput, Output


class DensitySensitivity(Sensitivity):
    r"""How far a regressor's predictive density moves when a column is perturbed (SD-L, SD-G).

    The target is taken as f(x) and noise; the loss of column j is the mean Kullback-Leibler
    divergence between the densities around :math:`f = f(x)` and :math:`f_j = f(x_{(j)})`, for
    Laplace noise with :math:`s = \mathrm{mean}|y - f|` and :math:`s_j = \mathrm{mean}|y - f_j|`

    .. math:: \ln\frac{s_j}{s} - 1 + \frac{s}{s_j}e^{-|f - f_j|/s} + \frac{|f - f_j|}{s_j}

    and for Gaussian noise, with mean squares in place of mean absolute values,

    .. math:: \ln\frac{s_j}{s} + \frac{(f - f_j)^2 + s^2}{2 s_j^2} - \frac{1}{2}.

    Of two copies of a column both look important until one is eliminated.

    ``sample_weight`` given to ``fit`` reaches the training alone: the average over rows is not
    weighted.

    Parameters
    ----------
    estimator : regressor
        Or a search over its hyper-parameters. Support vector regression (RBF, polynomial, linear),
        networks with one hidden layer, linear models, forests and boosting are evaluated for all
        columns together.
    noise : {"laplace", "gaussian"}, default="laplace"
    symmetric : bool, default=False
        Whether the mean of both directions of the divergence is taken.
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is perturbed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "left-out", "auto"}, default="training"
        See :class:`PosteriorSensitivity`; "left-out" takes ``NewtonSVR(epsilon=0)`` alone.
    n_repeats : int, default=1
        Shuffles of ``by="permutation"``; each has its own s_j, and scores are averaged.
    n_values : int or None, default=None
        Quantiles that stand for a column in ``by="marginal"``; None is every value.
    random_state : int, Generator or None, default=None
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows; the scores do not depend on it.
    precision : {"double", "single"}, default="double"
        Of the kernels on a device, see :class:`PosteriorSensitivity`.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance, see :class:`PosteriorSensitivity`.

    References
    ----------
    J.-B. Yang, C.-J. Ong, "Feature selection using probabilistic prediction of support vector
    regression", IEEE Trans. Neural Networks 22, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> criterion = DensitySensitivity(SVR(C=100, gamma=5)).fit(X, y)
    >>> criterion.loss(np.array([1, 2, 8])).round(2)
    array([0.02, 0.28, 0.31])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        noise: str = "laplace",
        symmetric: bool = False,
        by: Any = "marginal",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        precision: str = "double",
        adjusted: str | bool = "auto",
    ):
        self.estimator = estimator
        self.noise = noise
        self.symmetric = symmetric
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.precision = precision
        self.adjusted = adjusted

    _kind = DensityOutput
    _constraints: ClassVar[Constraints] = {"noise": one_of(*NOISES)}

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """A real target."""
        if "regression" not in super().targets:
            raise IncompatibleCriterion(
                f"DensitySensitivity needs a regressor, not {type(self.estimator).__name__}. Use "
                "PosteriorSensitivity for a classifier."
            )
        return frozenset({"regression"})

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        if y is not None and np.ptp(y) == 0:
            warnings.warn(
                f"DensitySensitivity: every row has the target {y[0]}, of which no column can tell "
                "anything: all losses are 0. Check the target column.",
                DegenerateData,
                stacklevel=2,
            )
        super()._learn(X, y, **params)

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return DensityOutput(training, estimator, self.noise, bool(self.symmetric))
