"""SVMs in the units of their data, whose width follows the number of columns.

With gamma = scale / n_features an SVM does not grow blunt while columns leave it.
"""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.svm import SVC, SVR

from tamis._checks import Constraints, check_parameters, number
from tamis._sparse import extremes, is_sparse


class RelativeSVC(SVC):
    """RBF support vector classifier whose width follows the number of columns.

    ``gamma`` is ``scale / n_features``, where constant columns do not count: with standardised
    columns ``scale=1`` is scikit-learn's ``gamma="scale"``.

    Parameters
    ----------
    C : float, default=2.0
    scale : float, default=1.0
        gamma times the number of columns.
    class_weight : dict, "balanced" or None, default=None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> RelativeSVC(scale=2.0).fit(*load_iris(return_X_y=True)).gamma
    0.5
    """

    _constraints: ClassVar[Constraints] = {"scale": number(above=0)}

    def __init__(self, C: float = 2.0, *, scale: float = 1.0, class_weight: Any = None):
        super().__init__(C=C, class_weight=class_weight)
        self.scale = scale

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train with the width that belongs to the columns of ``X``."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
        return super().fit(X, y, sample_weight)


class RelativeSVR(SVR):
    """RBF support vector regression in the units of its data.

    ``gamma`` is ``scale / n_features``, and C and epsilon are counted in standard deviations of the
    target, as if it were standardised.

    Parameters
    ----------
    cost : float, default=1.0
        C over the standard deviation of the target.
    tube : float, default=0.1
        epsilon over the standard deviation of the target.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train in the units of the data."""
        check_parameters(self)
        self.gamma = width(self.scale, X)
        spread = float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
        self.C, self.epsilon = self.cost * spread, self.tube * spread
        # the solver stops at a number of the target's units: of small ones it would stop at once,
        # of very large ones, whose thousandth is below rounding, never
        self.tol = 1e-3 * spread / min(max(spread, 1.0), 1e6)
        return super().fit(X, y, sample_weight)


def width(scale: float, X: Any) -> float:
    """gamma of a table: the scale over the number of columns that vary.

    Constant columns are in no distance, and ``gamma="scale"`` of scikit-learn counts them neither.
    """
    if is_sparse(X):
        low, high = extremes(X)
        varies = low < high
    else:
        X = np.asarray(X)
        varies = (X[:1] != X).any(axis=0)
    return float(scale / max(1, int(np.count_nonzero(varies))))
