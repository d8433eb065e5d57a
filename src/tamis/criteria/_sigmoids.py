"""Probabilities of decision values: Platt's sigmoids, fitted by scikit-learn."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from tamis._arrays import Array


class Sigmoids(NamedTuple):
    """p = 1 / (1 + exp(A f + B)) for each output; several are normalised to sum 1."""

    slopes: Array
    offsets: Array

    def probabilities(self, decisions: Array) -> Array:
        """Probability of the second of two classes, or of each of several."""
        z = decisions * self.slopes
        z += self.offsets
        with np.errstate(over="ignore"):
            np.exp(z, out=z)
        z += 1.0
        p = np.reciprocal(z, out=z)
        if len(self.slopes) == 1:
            return p
        total = p.sum(axis=-1, keepdims=True)
        return np.divide(p, total, out=np.full_like(p, 1 / len(self.slopes)), where=total > 0)

    def suit(self, decisions: Array) -> bool:
        """Whether one of them rises, and none is a step for these decisions.

        Platt's targets are no surer than log(n + 1), so that a sigmoid which leaves half of the
        rows surer than twice that was made for decisions of another size.
        """
        sure = np.median(np.abs(decisions * self.slopes + self.offsets), axis=0)
        return bool((self.slopes < 0).any() and (sure <= 2 * np.log(len(decisions) + 1)).all())


class Decisions(ClassifierMixin, BaseEstimator):
    """Classifier whose input already is its decision values."""

    def fit(self, X: Array, y: NDArray[Any]) -> "Decisions":
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Array) -> NDArray[Any]:
        """Class of the greatest decision value."""
        two = X.shape[1] == 1
        return np.asarray(self.classes_[(X[:, 0] > 0).astype(int) if two else X.argmax(axis=1)])

    def decision_function(self, X: Array) -> Array:
        """The input."""
        return X[:, 0] if X.shape[1] == 1 else X


def fit_sigmoids(decisions: Array, codes: NDArray[np.intp], weights: Any = None) -> Sigmoids:
    """Sigmoids of decision values that the machines gave for rows they had not seen.

    Platt's targets and the fit are those of ``CalibratedClassifierCV(method="sigmoid")``.
    """
    known = FrozenEstimator(Decisions().fit(decisions, codes))
    everything = np.arange(len(codes))
    fitted = CalibratedClassifierCV(
        known, method="sigmoid", ensemble=False, cv=[(everything, everything)]
    )
    fitted.fit(decisions, codes, sample_weight=weights)
    calibrators = fitted.calibrated_classifiers_[0].calibrators
    slopes = np.array([float(one.a_) for one in calibrators])
    return Sigmoids(slopes, np.array([float(one.b_) for one in calibrators]))
