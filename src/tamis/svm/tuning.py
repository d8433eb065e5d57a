"""The C that is provably best by cross-validation."""

from typing import Any, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.svm import SVC
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified
from tamis.folds.rows import retold
from tamis.svm.curves.certificate import Certificate, TriedGamma, against, certify
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve
from tamis.svm.curves.scores import check_scoring, scorer
from tamis.svm.curves.steps import StepCounts, curve_of
from tamis.svm.kernels import resolve_kernel
from tamis.svm.machine import most_steps
from tamis.svm.pairs import PairwisePaths, pairwise_paths
from tamis.svm.path.base import (
    RANGE,
    check_range,
    check_refit,
    checked,
    checked_rows,
    gammas_of,
)
from tamis.svm.path.binary import check_size
from tamis.svm.svc import box, encode

RULES = ("largest-lambda", "widest", "one-standard-error")
POOLS = ("folds", "samples")


class PathFold(NamedTuple):
    """The paths of one training part, and the part on which they are validated."""

    machines: PairwisePaths
    X: Array
    target: NDArray[np.int64]
    own: Array | None  # kernel of the points with themselves, where precomputed

    def steps(self, scoring: object, ways: tuple[int, ...] = (0,)) -> list[StepCounts]:
        """Correct predictions along the path, as :meth:`PairwisePaths.steps`."""
        return self.machines.steps(self.X, self.target, scoring, ways, self.own)


class TunedClassifier(ClassifierMixin, BaseEstimator):
    """What classifiers with a tuned C share: the folds before, the best estimator after."""

    best_estimator_: SVC  # declared, so that criteria know it for a search over hyper-parameters

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Classes by the machine with the best C."""
        return self._machine().predict(self._rows(X))

    def decision_function(self, X: ArrayLike) -> Array:
        """Decision values of the machine with the best C."""
        return self._machine().decision_function(self._rows(X))

    def _rows(self, X: ArrayLike) -> Array:
        return checked_rows(self, X)

    def _machine(self) -> SVC:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} with refit=False has no best_estimator_. "
                "Fit it with refit=True to predict."
            )
        return self.best_estimator_

    def _begin(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, NDArray[Any], NDArray[np.int64], Array]:
        """Validate everything before any work."""
        X, y = checked(self, X, y)
        name = type(self).__name__
        check_range(name, self.lambda_range)
        self.classes_, target = encode(name, y)
        check_scoring(name, self.scoring, len(self.classes_))
        if self.pool not in POOLS:
            raise InvalidParameter(f"{name} needs pool among {POOLS}; got {self.pool!r}.")
        return X, y, target, box(name, self.class_weight, X, y, target, sample_weight)

    def _splits(
        self, X: Array, y: NDArray[Any], target: NDArray[np.int64], bounds: Array
    ) -> list[Any]:
        """The folds; every class has to be in every training part, with a weight."""
        with retold(), np.errstate(invalid="ignore"):  # a cast of large numbers, as in encode
            splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        for k, (train, test) in enumerate(splits):
            lacking = np.setdiff1d(target, target[train][bounds[train] > 0])
            if len(lacking):
                raise InvalidTarget(
                    f"{type(self).__name__} needs every class in every training part; fold {k} "
                    f"trains without class {str(self.classes_[lacking[0]])!r}, or without a weight "
                    "for it. Use fewer folds or StratifiedKFold."
                )
            if self.scoring == "roc_auc" and len(np.unique(target[test])) < 2:
                raise InvalidTarget(
                    f"{type(self).__name__} needs both classes in every test part for roc_auc; "
                    f"fold {k} has one. Use fewer folds or StratifiedKFold."
                )
        return splits

    def _fold(
        self,
        gamma: Any,
        X: Array,
        target: NDArray[np.int64],
        bounds: Array,
        split: tuple[NDArray[np.intp], NDArray[np.intp]],
    ) -> PathFold:
        """Paths of one training part, with ``gamma`` resolved on it as SVC would."""
        train, test = split
        pairwise = self.kernel == "precomputed"
        inner = X[np.ix_(train, train)] if pairwise else X[train]
        outer = X[np.ix_(test, train)] if pairwise else X[test]
        name = type(self).__name__
        kernel = resolve_kernel(name, self.kernel, gamma, self.degree, self.coef0, inner)
        machines = pairwise_paths(
            kernel, inner, target[train], bounds[train], self.lambda_range, bracketed=True
        )
        return PathFold(machines, outer, target[test], np.diagonal(X)[test] if pairwise else None)

    def _refit(self, X: Array, y: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        machine = SVC(
            C=self.best_C_,
            kernel=self.kernel,
            gamma=self.best_gamma_,
            degree=self.degree,
            coef0=self.coef0,
            class_weight=self.class_weight,
            cache_size=500,
            max_iter=most_steps(len(X)),
        )
        with retold():
            self.best_estimator_ = machine.fit(X, y, sample_weight)


class SVCPathCV(TunedClassifier):
    """Support vector classifier with the C that minimises the cross-validated error, exactly.

    The error over the folds is a step function of C. Instead of being sampled on a grid it is
    computed as a whole from the regularization paths of the folds (J.-B. Yang and C.-J. Ong 2011),
    so its minimum is *the* minimum; a certificate says how sure that is.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
    gamma : float, "scale", "auto" or a sequence of these, default="scale"
        A sequence is a grid, with the exact best C for each of its members; of equals the first.
    cv : int, splitter or iterable, default=5
    scoring : str or tuple, default="error"
        "error", "balanced_error", ("weighted_error", weight of the negative class), "accuracy",
        "balanced_accuracy", "precision", "recall", "f1", "matthews_corrcoef" or "roc_auc".
    rule : {"largest-lambda", "widest", "one-standard-error"}, default="largest-lambda"
        Which of several best intervals of C: the one with the smallest C, the widest, or the widest
        of those within one standard error (over folds) of the best value.
    pool : {"folds", "samples"}, default="folds"
        Mean of the folds' values, or the value for the predictions of all folds together.
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
    degree, coef0, class_weight
        As in :class:`SVCPath`.
    refit : bool, default=True
        Whether to train ``best_estimator_`` on all samples.

    Attributes
    ----------
    best_C_, best_gamma_, best_score_
        ``best_C_`` lies inside ``best_interval_``; the score is the value of ``scoring`` there.
    best_interval_ : IntervalOfC
    curve_ : ValidationCurve
        The exact curve for the best gamma.
    curves_ : list of ValidationCurve
        One for each gamma.
    certificate_ : Certificate
    best_estimator_ : SVC

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = SVCPathCV("linear", cv=3).fit(scale(X[:150]), y[:150])
    >>> round(search.best_score_, 4), search.certificate_.closed
    (0.0267, True)
    """

    curve_: ValidationCurve
    certificate_: Certificate
    best_C_: float
    best_gamma_: Any

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: Any = "scale",
        cv: Any = 5,
        scoring: str | tuple[str, float] = "error",
        rule: str = "largest-lambda",
        pool: str = "folds",
        lambda_range: tuple[float, float] = RANGE,
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        refit: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.pool = pool
        self.lambda_range = lambda_range
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.refit = refit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the best C and train with it."""
        X, y, target, bounds = self._begin(X, y, sample_weight)
        name = type(self).__name__
        check_size(name, len(X))
        if self.refit:
            check_refit(self, X)
        if self.rule not in RULES:
            raise InvalidParameter(
                f"{name} needs a rule among {', '.join(RULES)}; got {self.rule!r}."
            )
        splits = self._splits(X, y, target, bounds)
        tried = [self._try(gamma, X, target, bounds, splits) for gamma in gammas_of(self.gamma)]
        best = tried[0]
        for other in tried[1:]:
            best = other if _better(other.curve, best.curve) else best
        self.curves_ = [one.curve for one in tried]
        self.curve_, self.best_gamma_, self.best_interval_ = best.curve, best.gamma, best.interval
        self.best_C_ = best.interval.middle
        self.best_score_ = float(best.curve(self.best_C_))
        rivals = [one.certificate for one in tried if one is not best]
        self.certificate_ = against(best.certificate, rivals, best.curve.greater_is_better)
        if not self.certificate_.closed:
            warn(
                f"{type(self).__name__} could not certify its best C: {self.certificate_.reason}. "
                "See certificate_; the curve stands as computed.",
                NotCertified,
                stacklevel=2,
            )
        if self.refit:
            self._refit(X, y, sample_weight)
        return self

    def _try(
        self,
        gamma: Any,
        X: Array,
        target: NDArray[np.int64],
        bounds: Array,
        splits: list[Any],
    ) -> TriedGamma:
        """The exact curve for one gamma, and what is proved about its optimum."""
        paths, counted = [], []
        for split in splits:
            fold = self._fold(gamma, X, target, bounds, split)
            paths += [path.solution for path in fold.machines.paths]
            counted.append(fold.steps(self.scoring, (0, 1, -1)))
        score = scorer(self.scoring)
        (curve, values), (high, _), (low, _) = (
            curve_of(steps, *score, self.pool) for steps in zip(*counted, strict=True)
        )
        interval = choose(curve, values, self.rule)
        # a rule may prefer a C that is not quite the best; what is certified is the best
        C = interval.middle
        if self.rule == "one-standard-error":
            C = max(curve.argmin, key=lambda interval: interval.width).middle
        proof = certify(curve, C, high, low, paths, self.lambda_range[0])
        return TriedGamma(gamma, curve, interval, proof)


def choose(curve: ValidationCurve, fold_values: Array, rule: str) -> IntervalOfC:
    """The interval of C that the rule prefers."""
    if rule == "largest-lambda":
        return curve.argmin[0]
    level = curve.best
    if rule == "one-standard-error" and len(fold_values) > 1:
        piece = int(np.argmax(np.isclose(curve.values, level, rtol=0, atol=1e-12)))
        error = fold_values[:, piece].std(ddof=1) / np.sqrt(len(fold_values))
        level += -error if curve.greater_is_better else error
    return max(curve.within(level), key=lambda interval: interval.width)


def _better(curve: ValidationCurve, other: ValidationCurve) -> bool:
    gain = curve.best - other.best
    return gain > 1e-12 if curve.greater_is_better else gain < -1e-12
