"""Comparison methods that choose C by a grid or by gradient descent."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC
from sklearn.utils import Tags

from tamis._checks import Constraints, integer, number, one_of
from tamis.exceptions import InvalidTarget
from tamis.svm.curves.scores import graded
from tamis.svm.curves.steps import curve_of
from tamis.svm.inputs import RANGE, check_size
from tamis.svm.kernels import GAMMA
from tamis.svm.machine import most_steps
from tamis.svm.path.problems import PathFold, pairwise_paths
from tamis.svm.search.base import TuningRows
from tamis.svm.search.classification import TunedClassifier
from tamis.validation.splits import Fold, reword_warnings
from tamis_book.objectives import (
    RadiusMarginObjective,
    SmoothError,
    SmoothObjective,
    SpanObjective,
)


@dataclass(eq=False, repr=False)
class _Options:
    """Parameters that both classes share with :class:`tamis.svm.SVCPathCV`."""

    kernel: str = "rbf"
    _: KW_ONLY
    gamma: float | str = "scale"
    C_range: tuple[float, float] | None = None
    cv: Any = 5
    scoring: str | tuple[str, float] | None = None
    pool: str = "folds"
    lambda_range: tuple[float, float] = RANGE
    degree: int = 3
    coef0: float = 0.0
    class_weight: dict[Any, float] | str | None = None
    refit: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class GridC(_Options, TunedClassifier):
    """Support vector classifier with the best C of a grid, by cross-validation.

    Parameters
    ----------
    kernel, gamma, C_range, cv, scoring, pool, lambda_range, degree, coef0, class_weight, refit
        As in :class:`tamis.svm.SVCPathCV`. ``gamma`` is a single value.
    step : float, default=1.0
        Step of the grid in log2 C.
    refine : int, default=0
        Number of refinements. Each refinement halves the step and tries both neighbours of the best
        point. Use a grid with refinement for data that are too large for the exact path.
    solver : {"libsvm", "path"}, default="libsvm"
        "libsvm" trains an SVM at every point of the grid. "path" computes the exact paths of the
        folds, which takes the same time for any number of points.

    Attributes
    ----------
    best_C_, best_score_, best_gamma_, best_estimator_
        The best parameters, score and model. Ties go to the smallest C.
    C_ : ndarray
        The values of C that were tried, in ascending order.
    scores_ : ndarray
        The score of each value in ``C_``. Greater is better.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = GridC("linear", cv=3, lambda_range=(0.25, 64)).fit(scale(X[:150]), y[:150])
    >>> search.C_.size, search.best_C_
    (9, 0.015625)
    """

    _constraints: ClassVar[Constraints] = {
        "gamma": GAMMA,
        "step": number(above=0),
        "refine": integer(0),
        "solver": one_of("libsvm", "path"),
    }

    step: float = 1.0
    refine: int = 0
    solver: str = "libsvm"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Score all points of the grid, and train with the best C."""
        rows = self._begin(X, y, sample_weight)
        if self.solver == "libsvm" or self.refit:
            self._check_refit(rows, "solver='path', refit=False")
        splits = self._splits(rows)
        value = self._function(rows, splits)
        top, bottom = (-np.log2(end) for end in self._lambdas)
        exponents = np.arange(bottom, top + 1e-9, self.step)
        tried = {float(e): value(e) for e in exponents}
        step = self.step
        for _ in range(self.refine):
            step /= 2
            centre = self._best_of(tried)
            for e in (centre - step, centre + step):
                if bottom <= e <= top:
                    tried[e] = value(e)
        self.best_C_ = float(2.0 ** self._best_of(tried))
        self.best_gamma_ = self.gamma
        self.C_ = 2.0 ** np.array(sorted(tried))
        self.scores_ = np.array([tried[e] for e in sorted(tried)])
        self.best_score_ = tried[self._best_of(tried)]
        if self.refit:
            self._refit(rows, splits)
        return self

    def _best_of(self, tried: dict[float, float]) -> float:
        return max(sorted(tried), key=lambda e: round(tried[e], 12))

    def _function(self, rows: TuningRows, splits: list[Fold]) -> Callable[[float], float]:
        """Return a function that maps log2 C to the score."""
        if self.solver == "libsvm":
            return lambda exponent: self._value(exponent, rows, splits)
        check_size("GridC", len(rows.X))
        folds = [self._fold(self.gamma, rows, split) for split in splits]
        score = _score(self, folds)
        return lambda exponent: score(2.0**exponent)

    def _value(self, exponent: float, rows: TuningRows, splits: list[Fold]) -> float:
        """Return the score at ``C = 2 ** exponent``."""
        X, target, weights = rows.X, rows.target, rows.weight / rows.weight.max()
        right, total = [], []
        for train, test in splits:
            svc = SVC(
                C=2.0**exponent,
                kernel=self.kernel,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
                cache_size=500,
                max_iter=most_steps(len(X)),
            )
            pairwise = self.kernel == "precomputed"
            inner = X[np.ix_(train, train)] if pairwise else X[train]
            outer = X[np.ix_(test, train)] if pairwise else X[test]
            with reword_warnings():
                svc.fit(inner, target[train], self._bounds(rows, train))
            weight = weights[test]
            counts = np.bincount(target[test], weight, len(self.classes_))
            if self.scoring == "roc_auc":
                pairs = np.array([counts.prod()])
                decisions = svc.decision_function(outer)
                area = roc_auc_score(target[test], decisions, sample_weight=weight)
                right.append(area * pairs[:, None])
                total.append(pairs[:, None])
                continue
            hit = svc.predict(outer) == target[test]
            right.append(np.bincount(target[test], hit * weight, len(counts))[:, None])
            total.append(counts[:, None])
        score, sign = graded(self.scoring)
        if self.pool == "samples":
            return sign * float(score(np.sum(right, axis=0), np.sum(total, axis=0))[0])
        return sign * float(np.mean([score(r, t)[0] for r, t in zip(right, total, strict=True)]))


@dataclass(eq=False, repr=False, kw_only=True)
class GradientC(_Options, TunedClassifier):
    """Support vector classifier with a C found by gradient descent on a smooth objective.

    L-BFGS finds a stationary point near the start. The objective only approximates the error.
    :class:`tamis.svm.SVCPathCV` finds the optimum of the error itself.

    Parameters
    ----------
    kernel, gamma, C_range, cv, scoring, pool, lambda_range, degree, coef0, class_weight, refit
        As in :class:`tamis.svm.SVCPathCV`, for two classes. ``gamma`` is a single value.
        ``scoring`` is used only to measure the result.
    objective : {"error", "radius-margin", "span"}, default="error"
        "error" is the cross-validated error, with a sigmoid instead of the step function (Keerthi,
        Sindhwani and Chapelle 2007). "radius-margin" is a bound (Chung et al. 2003), and "span" an
        estimate (Chapelle et al. 2002), for the leave-one-out error on all samples.
    start : float, default=1.0
        Initial value of lambda = 1 / C.

    Attributes
    ----------
    best_C_, best_score_, best_gamma_, best_estimator_
        The parameters found, the score by ``scoring`` (greater is better), and the model.
    objective_value_ : float
        Value of the objective at ``best_C_``.
    n_evaluations_ : int
        Number of evaluations of the objective.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = GradientC("linear", cv=3).fit(scale(X[:150]), y[:150])
    >>> search.best_score_ > 0.94
    True
    """

    _constraints: ClassVar[Constraints] = {
        "gamma": GAMMA,
        "objective": one_of("error", "radius-margin", "span"),
        "start": number(above=0),
    }

    objective: str = "error"
    start: float = 1.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Minimise the objective from ``start``, and train with the C found."""
        rows = self._begin(X, y, sample_weight)
        check_size("GradientC", len(rows.y))
        if len(self.classes_) > 2:
            # scikit-learn's estimator checks expect a message that begins like this
            raise InvalidTarget(
                "Only binary classification is supported by GradientC: its objectives are defined "
                f"for two classes; y has {len(self.classes_)}. Use SVCPathCV."
            )
        if self.refit:
            self._check_refit(rows)
        splits, lambdas = self._splits(rows), self._lambdas
        folds = [self._fold(self.gamma, rows, split) for split in splits]
        low, high = np.log(lambdas)
        found = minimize(
            self._function(folds, rows).in_log_lambda,
            np.clip(np.log(self.start), low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, high)],
        )
        lam = float(np.clip(np.exp(found.x[0]), *lambdas))
        self.best_C_ = 1.0 / lam
        self.best_gamma_ = self.gamma
        self.objective_value_ = float(found.fun)
        self.n_evaluations_ = int(found.nfev)
        self.best_score_ = _score(self, folds)(self.best_C_)
        if self.refit:
            self._refit(rows, splits)
        return self

    def _function(self, folds: list[PathFold], rows: TuningRows) -> SmoothObjective:
        if self.objective == "error":
            return SmoothError(folds)
        own = rows.X, rows.target, self._bounds(rows)
        machines = pairwise_paths(self._resolve(rows.X), *own, self._lambdas)
        if self.objective == "radius-margin":
            return RadiusMarginObjective(machines)
        return SpanObjective(machines, self._lambdas)


def _score(search: Any, folds: list[PathFold]) -> Callable[[float], float]:
    """Return a function that maps C to the exact score over the folds."""
    steps = [fold.steps(search.scoring)[0] for fold in folds]
    function, sign = graded(search.scoring)
    curve = curve_of(steps, function, sign > 0, search.pool)[0]
    return lambda C: sign * float(curve(C))
