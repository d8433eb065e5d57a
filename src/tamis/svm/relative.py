"""SVMs whose gamma depends on the number of columns, for searches that remove columns.

With gamma = scale / n_features, kernels of tables with different numbers of columns have comparable
widths.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.svm import SVC, SVR

from tamis._arrays import extremes
from tamis._checks import Constraints, check_parameters, number
from tamis._sparse import is_sparse


class RelativeSVC(SVC):
    """RBF support vector classifier whose gamma is relative to the number of columns.

    ``gamma`` is ``scale`` divided by the number of columns that are not constant. With standardised
    columns, ``scale=1`` is the same as scikit-learn's ``gamma="scale"``.

    Parameters
    ----------
    C : float, default=2.0
        Weight of the losses, as in SVC.
    scale : float, default=1.0
        gamma times the number of columns.
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply C for each class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> RelativeSVC(scale=2.0).fit(*load_iris(return_X_y=True)).gamma
    0.5
    """

    _constraints: ClassVar[Constraints] = {"scale": number(above=0)}

    def __init__(
        self,
        C: float = 2.0,
        *,
        scale: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
    ):
        super().__init__(C=C, class_weight=class_weight)
        self.scale = scale

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Set gamma from the number of columns of ``X``, and train the classifier."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
        return super().fit(X, y, sample_weight)


class RelativeSVR(SVR):
    """RBF support vector regression with parameters relative to its data.

    ``gamma`` is ``scale`` divided by the number of columns that are not constant. C and epsilon are
    multiples of the standard deviation of the target.

    Parameters
    ----------
    cost : float, default=1.0
        C divided by the standard deviation of the target. C is the weight of the losses, as in SVR.
    tube : float, default=0.1
        epsilon divided by the standard deviation of the target. epsilon is the half-width of the
        tube.
    scale : float, default=1.0
        gamma times the number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(RelativeSVR(cost=2.0).fit(X, y).C)
    154
    """

    _constraints: ClassVar[Constraints] = {"scale": number(above=0)}

    def __init__(self, cost: float = 1.0, *, tube: float = 0.1, scale: float = 1.0):
        super().__init__()
        self.cost = cost
        self.tube = tube
        self.scale = scale

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Set gamma, C and epsilon from the data, and train the regressor."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
        spread = float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
        self.C, self.epsilon = self.cost * spread, self.tube * spread
        # The tolerance of the solver is absolute. With a fixed tolerance of 1e-3, it would stop at
        # once if the target is tiny, and never if rounding of a large target exceeds 1e-3.
        self.tol = 1e-3 * spread / min(max(spread, 1.0), 1e6)
        return super().fit(X, y, sample_weight)


def width(scale: float, X: Any) -> float:
    """Return gamma for a table: ``scale`` divided by the number of columns that are not constant.

    Constant columns are not counted because they do not change distances.
    """
    if is_sparse(X):
        low, high = extremes(X)
        varies = low < high
    else:
        X = np.asarray(X)
        varies = (X[:1] != X).any(axis=0)
    return float(scale / max(1, int(np.count_nonzero(varies))))
