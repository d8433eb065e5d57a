"""Search for the C of a least-squares SVM with the provably best cross-validated error."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import Tags

from tamis._arrays import Array
from tamis._checks import Constraint, Constraints, one_of
from tamis.exceptions import InvalidTarget
from tamis.svm.curves.certificate import against, certify
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.inputs import RANGE, RISING
from tamis.svm.newton import NewtonSVR
from tamis.svm.path.least_squares import LeastSquaresPath, kernel_numbers
from tamis.svm.search.base import gammas_of
from tamis.svm.search.classification import TunedClassifier
from tamis.validation.splits import Fold

#: C must be from 1 / LARGEST_C to LARGEST_C, so that products of two multipliers do not overflow.
LARGEST_C = 1e100


@dataclass(eq=False, repr=False, kw_only=True)
class LSSVCPathCV(TunedClassifier):
    r"""Least-squares support vector classifier with the C that minimises the cross-validated error.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i (y_i - f(x_i))^2, \qquad y_i = \pm 1

    One eigendecomposition of the kernel matrix of a training fold gives the SVM of the fold at
    every C. Each C at which the predicted label of a test row changes is found up to rounding.
    Apart from these points, the error is known exactly, and the certificate states whether any C in
    the range can be better.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        The kernel, as in SVC.
    gamma : {"scale", "auto"}, float or list of them, default="scale"
        Width of the kernels "rbf" and "poly". If a list is given, the best gamma is used.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    C_range : tuple of float, default=(2**-9, 2**8)
        Smallest and largest C.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.

    Attributes
    ----------
    best_C_ : float
        The middle of the widest interval of equally good values of C.
    best_gamma_ : float or str
        The best gamma.
    best_params_ : dict
        The best C and gamma.
    best_score_ : float
        Mean accuracy over the folds at the best C.
    curve_ : ValidationCurve
        The error at every C.
    certificate_ : Certificate
        States whether it is proved that no C in the range is better.
    best_estimator_ : NewtonSVR
        The SVM with the best C, trained on all samples with targets -1 and 1.
    classes_ : array
        The two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = LSSVCPathCV().fit(scale(X)[:150], y[:150])
    >>> search.certificate_.closed, round(search.best_score_, 3)
    (True, 0.953)
    """

    #: Parameters of the other searches that have fixed values in this class.
    lambda_range = RANGE
    scoring = None

    _constraints: ClassVar[Constraints] = {
        "kernel": one_of("rbf", "linear", "poly"),
        "C_range": Constraint(
            (f"a pair of increasing numbers from {1 / LARGEST_C:.0e} to {LARGEST_C:.0e}",),
            lambda ends: RISING.accepts(ends) and 1 / LARGEST_C <= ends[0] < ends[1] <= LARGEST_C,
        ),
    }

    C_range: tuple[float, float] = (2.0**-9, 2.0**8)
    cv: int | BaseCrossValidator | Iterable[Any] = 5

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Find the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two classes.
        groups : array of shape (n_samples,) or None
            Group of each sample. A fold never has samples of the same group in both training and
            test set.

        Returns
        -------
        LSSVCPathCV
        """
        rows = self._begin(X, y, None)
        if len(self.classes_) != 2:
            raise InvalidTarget(
                "LSSVCPathCV needs two classes. Only binary classification is supported; got "
                f"{len(self.classes_)} classes. Write OneVsRestClassifier(LSSVCPathCV()) for more."
            )
        signs, splits = np.where(rows.target == 1, 1.0, -1.0), self._splits(rows, groups)
        gammas = gammas_of(self.gamma)
        found = [self._brackets(gamma, rows.X, signs, splits) for gamma in gammas]
        # ties go to the first
        best = min(range(len(found)), key=lambda k: found[k][2].best)
        intervals = [max(worst.argmin, key=lambda interval: interval.width) for *_, worst in found]
        proofs = [
            certify(curve, interval.middle, low, high, [], 0.0, "error")
            for (curve, low, high), interval in zip(found, intervals, strict=True)
        ]
        proof = against(proofs[best], proofs[:best] + proofs[best + 1 :], False)
        self.certificate_ = replace(
            proof, lower=min(one.lower for one in proofs), interval=intervals[best],
            problem=self._problem(len(splits), False, "error"),
        )  # fmt: skip
        self.curve_, self.best_C_, self.best_gamma_ = found[best][0], proof.C, gammas[best]
        self.best_params_ = {"C": self.best_C_, "gamma": self.best_gamma_}
        self.best_score_ = 1 - proof.value
        self.best_estimator_ = NewtonSVR(
            self.best_C_, epsilon=0.0, kernel=self.kernel, gamma=self.best_gamma_,
            degree=self.degree, coef0=self.coef0,
        ).fit(rows.X, signs)  # fmt: skip
        return self

    def _brackets(
        self, gamma: Any, X: Array, signs: Array, splits: list[Fold]
    ) -> tuple[ValidationCurve, ValidationCurve, ValidationCurve]:
        """Return the mean error over the folds at every C, its lower bound and its upper bound."""
        ends = 1 / (2 * self.C_range[1]), 1 / (2 * self.C_range[0])
        start, parts = 0.0, []
        for train, test in splits:
            kernel = self._resolve(X[train], gamma)
            (own, size), new = (kernel_numbers(kernel, X[part], X[train]) for part in (train, test))
            path = LeastSquaresPath(own, signs[train], float(size.max()))
            first, changes = path.outputs(*new).sign_changes(*ends)
            positive, weight = signs[test] > 0, 1 / (len(splits) * len(test))
            start += weight * float((first != positive).sum())
            row, low, high, below, above = np.array(changes).reshape(-1, 5).T
            truth = positive[row.astype(np.intp)]
            before, after = weight * (below != truth), weight * (above != truth)
            parts.append((low, high, before, after, np.full(len(row), weight)))
        low, high, before, after, each = (np.concatenate(p) for p in zip(*parts, strict=True))
        both = np.concatenate([low, high])
        # between the two ends of a bracketed root, the predicted label may be right or wrong
        at_best = np.concatenate([-before, after])
        at_worst = np.concatenate([each - before, after - each])
        return (
            _error_curve(start, np.sqrt(low * high), after - before, ends),
            _error_curve(start, both, at_best, ends),
            _error_curve(start, both, at_worst, ends),
        )

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the decision values of the SVM with the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._best().predict(self._rows(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row with the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        outputs = self.decision_function(X)
        return self.classes_[(outputs > 0).astype(int)]


def _error_curve(
    start: float, lam: Array, changes: Array, ends: tuple[float, float]
) -> ValidationCurve:
    """Return the curve of an error over C = 1 / 2λ, for λ between the two ``ends``.

    The error is ``start`` at the smaller end, and changes by ``changes`` at the values ``lam``.
    """
    order = np.argsort(lam, kind="stable")
    order = order[changes[order] != 0]
    levels = start + np.concatenate([[0.0], np.cumsum(changes[order])])
    edges = np.concatenate([ends[:1], lam[order], ends[1:]])
    wide = np.diff(edges) > 0  # several labels may change at the same λ
    edges = np.append(ends[0], edges[1:][wide])
    values = np.round(levels[wide], 12)[::-1]
    at = np.maximum(np.append(values[0], values), np.append(values, values[-1]))
    return ValidationCurve.steps(1 / (2 * edges[::-1]), values, at)
