"""LSSVCPathCV: the C of the least-squares machine that is best in cross-validation, proved."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array, class_codes, is_real
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm.curves.certificate import Certificate
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.kernels import resolve_kernel
from tamis.svm.least_squares import LeastSquaresPath, RationalOutputs, kernel_numbers
from tamis.svm.machine import KERNELS
from tamis.svm.newton import NewtonSVR
from tamis.svm.path.base import check_gammas, gammas_of
from tamis.svm.searching import TuningRows, problem_of, splits_of

#: Largest C, and one over the least: products of two multipliers of such are numbers.
LARGEST_C = 1e100


class Brackets(NamedTuple):
    """The error at every C, and the least and most that it can be."""

    curve: ValidationCurve
    optimistic: ValidationCurve
    pessimistic: ValidationCurve


class _Errors:
    """Steps of an error in λ: where it changes, and by how much."""

    def __init__(self) -> None:
        self.start = 0.0
        self.places: list[float] = []
        self.changes: list[float] = []

    def add(self, place: float, change: float) -> None:
        """A change at one λ."""
        if change:
            self.places.append(place)
            self.changes.append(change)

    def curve(self, low: float, high: float) -> ValidationCurve:
        """As a function of C = 1 / 2λ, between two λ."""
        order = np.argsort(self.places, kind="stable")
        places = np.array(self.places)[order]
        levels = self.start + np.concatenate([[0.0], np.cumsum(np.array(self.changes)[order])])
        ends = np.concatenate([[low], places, [high]])
        wide = np.diff(ends) > 0  # several samples may change at one place
        ends = np.concatenate([[low], ends[1:][wide]])
        values = np.round(levels[wide], 12)[::-1]
        padded = np.concatenate([values[:1], values, values[-1:]])
        at = np.maximum(padded[:-1], padded[1:])
        return ValidationCurve.steps(1 / (2 * ends[::-1]), values, at)


class LSSVCPathCV(ClassifierMixin, BaseEstimator):
    r"""Least-squares support vector classifier with the C that is best in cross-validation.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i (y_i - f(x_i))^2, \qquad y_i = \pm 1

    One eigendecomposition of a training part gives its machine at every C. Where the label of a
    validation sample changes is found in brackets of rounding width; outside them the error is
    known, and the certificate says whether any C of the range can be better.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    gamma : {"scale", "auto"}, float or list of them, default="scale"
        Of several the best is taken.
    degree : int, default=3
    coef0 : float, default=0.0
    C_range : tuple of float, default=(2**-9, 2**8)
        The range of C.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.

    Attributes
    ----------
    best_C_ : float
        The middle of the widest interval of best C.
    best_gamma_ : float or str
    best_params_ : dict
    best_score_ : float
        Mean accuracy over the folds at the best C.
    curve_ : ValidationCurve
        The error at every C.
    certificate_ : Certificate
    best_estimator_ : NewtonSVR
        The machine of the best C, trained on all samples with targets -1 and 1.
    classes_ : array

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = LSSVCPathCV().fit(scale(X)[:150], y[:150])
    >>> search.certificate_.closed, round(search.best_score_, 3)
    (True, 0.953)
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C_range: tuple[float, float] = (2.0**-9, 2.0**8),
        cv: Any = 5,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C_range = C_range
        self.cv = cv

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Find the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Two classes.
        groups : array of shape (n_samples,) or None
            Samples of one group stay on one side of a split.

        Returns
        -------
        LSSVCPathCV
        """
        self._check()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = class_codes(y)
        if len(self.classes_) != 2:
            raise InvalidTarget(
                "LSSVCPathCV needs two classes. Only binary classification is supported; got "
                f"{len(self.classes_)} classes. Write OneVsRestClassifier(LSSVCPathCV()) for more."
            )
        signs = np.where(codes == 1, 1.0, -1.0)
        rows = TuningRows(X, y, signs, np.ones(len(y)))
        splits = splits_of(self, rows, groups, classifier=True)
        gammas = gammas_of(self.gamma)
        found = [self._brackets(gamma, X, signs, splits) for gamma in gammas]
        # of equals the first
        best = min(range(len(found)), key=lambda k: found[k].pessimistic.best)
        self.best_gamma_, self.curve_ = gammas[best], found[best].curve
        stated = problem_of(self, len(splits), False, "error")
        self._conclude(found[best], min(one.optimistic.best for one in found), len(gammas), stated)
        self.best_estimator_ = NewtonSVR(
            self.best_C_, epsilon=0.0, kernel=self.kernel, gamma=self.best_gamma_,
            degree=self.degree, coef0=self.coef0,
        ).fit(X, signs)  # fmt: skip
        return self

    def _check(self) -> None:
        if not isinstance(self.kernel, str) or self.kernel not in KERNELS:
            raise InvalidParameter(
                f"LSSVCPathCV needs kernel='rbf', 'linear' or 'poly', not {self.kernel!r}."
            )
        ends = self.C_range
        pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_real, ends))
        if not pair or not 0 < ends[0] < ends[1]:
            raise InvalidParameter(
                f"LSSVCPathCV needs C_range as two rising numbers above 0, not {ends!r}."
            )
        if ends[0] < 1 / LARGEST_C or ends[1] > LARGEST_C:
            raise InvalidParameter(
                f"LSSVCPathCV needs C_range between {1 / LARGEST_C:.0e} and {LARGEST_C:.0e}, whose "
                f"squares are numbers, not {ends!r}."
            )
        check_gammas("LSSVCPathCV", self.gamma)

    def _brackets(self, gamma: Any, X: Array, signs: Array, splits: Sequence[Any]) -> Brackets:
        """The mean over folds of the error, and what it can be."""
        low, high = (1 / (2 * C) for C in self.C_range[::-1])
        errors = _Errors(), _Errors(), _Errors()
        for train, test in splits:
            outputs = self._outputs(gamma, X, signs, train, test)
            _count(errors, outputs, signs[test] > 0, (low, high), 1 / (len(splits) * len(test)))
        return Brackets(*(one.curve(low, high) for one in errors))

    def _outputs(
        self, gamma: Any, X: Array, signs: Array, train: Any, test: Any
    ) -> RationalOutputs:
        if len(np.unique(signs[train])) < 2:
            raise InvalidTarget(
                "LSSVCPathCV needs both classes in every training part. Use fewer folds or "
                "StratifiedKFold."
            )
        numbers = self.kernel, gamma, self.degree, self.coef0
        kernel = resolve_kernel("LSSVCPathCV", *numbers, X[train])
        own, rows = (kernel_numbers(kernel, X[part], X[train]) for part in (train, test))
        path = LeastSquaresPath(own.values, signs[train], float(own.size.max()))
        return path.outputs(rows.values, rows.size)

    def _conclude(self, best: Brackets, lower: float, n_gammas: int, stated: str) -> None:
        """The best C, and what is certain of it."""
        upper = best.pessimistic.best
        interval = max(best.pessimistic.argmin, key=lambda one: one.width)
        self.best_C_ = interval.middle
        value = float(best.curve(self.best_C_))
        closed = upper <= lower + 1e-12
        self.best_params_ = {"C": self.best_C_, "gamma": self.best_gamma_}
        self.best_score_ = 1 - value
        self.certificate_ = Certificate(
            value=value, C=self.best_C_, lower=lower, upper=upper, closed=closed,
            violation=0.0, gap=0.0,
            reason="" if closed else f"an error of {lower:.4g} is possible within rounding",
            optimistic=best.optimistic, pessimistic=best.pessimistic,
            checkpoints=np.empty((0, 3)), interval=interval, measure="error", n_gammas=n_gammas,
            problem=stated,
        )  # fmt: skip

    def decision_function(self, X: Any) -> Array:
        """Outputs of the machine with the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.best_estimator_.predict(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes by the machine with the best C.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        codes = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[codes])


def _count(
    errors: tuple[_Errors, _Errors, _Errors],
    outputs: RationalOutputs,
    positive: NDArray[np.bool_],
    ends: tuple[float, float],
    weight: float,
) -> None:
    """Add the errors of one fold: as they are, at best and at worst."""
    nominal, best, worst = errors
    first, changes = outputs.sign_changes(*ends)
    wrong = weight * float((first != positive).sum())
    for one in errors:
        one.start += wrong
    for row, low, high, below, above in changes:
        before = weight * (below != positive[row])
        after = weight * (above != positive[row])
        nominal.add(float(np.sqrt(low * high)), after - before)
        # inside the bracket the label may be either
        best.add(low, 0.0 - before)
        best.add(high, after)
        worst.add(low, weight - before)
        worst.add(high, after - weight)
