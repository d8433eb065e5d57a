"""Search for the C of a support vector classifier that is provably best by cross-validation."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if

from tamis._arrays import Array
from tamis._checks import Constraints, one_of
from tamis.exceptions import InvalidTarget
from tamis.svm.curves.certificate import FoldTrials, PathAudit, TriedGamma, certify
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve
from tamis.svm.curves.scores import check_scoring, graded, scorer, words_of
from tamis.svm.curves.steps import StepCounts, curve_of
from tamis.svm.inputs import RANGE, check_size, encode_classes, weigh_classes
from tamis.svm.path.problems import PathFold, pairwise_paths
from tamis.svm.search.base import FoldFound, PathSearch, TunedSVM, TuningRows
from tamis.validation.splits import Fold, retold

RULES = ("first", "largest-lambda", "widest", "one-standard-error")
#: How far inside an interval, relative to C, its largest lambda is taken: on the end itself a
#: decision value is 0, and no machine can be asked for its sign.
INSIDE = 1e-9


class TunedClassifier(ClassifierMixin, TunedSVM):
    """A support vector classifier that is trained with the C that is best in cross-validation."""

    def decision_function(self, X: ArrayLike) -> Array:
        """Decision values with the best C."""
        return self._best().decision_function(self._rows(X))

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        rows = super()._begin(X, y, sample_weight)
        name = type(self).__name__
        self.classes_, target = encode_classes(name, rows.y)
        check_scoring(name, self.scoring, len(self.classes_))
        self._bounds(rows)  # refuses weights that no machine can have
        return rows._replace(target=target)

    def _bounds(self, rows: TuningRows, part: Any = slice(None)) -> Array:
        """Upper bounds of training samples; balanced class weights are computed on them."""
        name = type(self).__name__
        return weigh_classes(name, self.class_weight, rows.y[part], rows.weight[part])

    def _splits(self, rows: TuningRows, groups: Any = None) -> list[Fold]:
        """Make the folds; every class has to be in every training part, with a weight."""
        splits = super()._splits(rows, groups)
        target, weight, name = rows.target, rows.weight, type(self).__name__
        for k, (train, test) in enumerate(splits):
            lacking = np.setdiff1d(target, target[train][weight[train] > 0])
            if len(lacking):
                raise InvalidTarget(
                    f"{name} needs every class in every training part; fold {k} trains without "
                    f"class {str(self.classes_[lacking[0]])!r}, or without a weight for it. Use "
                    "fewer folds or StratifiedKFold."
                )
            if self.scoring == "roc_auc" and len(np.unique(target[test][weight[test] > 0])) < 2:
                raise InvalidTarget(
                    f"{name} needs both classes in every test part for roc_auc; fold {k} has one, "
                    "or a weight for one. Use fewer folds or StratifiedKFold."
                )
        return splits

    def _fold(self, gamma: Any, rows: TuningRows, split: Fold) -> PathFold:
        """Paths of one training part, with gamma and class weights resolved on it as SVC would."""
        (train, test), (inner, outer, own) = split, self._fold_rows(rows, split)
        known = inner, rows.target[train], self._bounds(rows, train)
        kernel = self._resolve(inner, gamma)
        machines = pairwise_paths(kernel, *known, self._lambdas, bracketed=True)
        weight = rows.weight[test] / rows.weight.max()
        return PathFold(machines, outer, rows.target[test], own, weight)


def _with_probability(search: "SVCPathCV") -> bool:
    if not search.probability:
        raise AttributeError(
            f"{type(search).__name__} has predict_proba with probability=True, which calibrates "
            "the best machine."
        )
    return True


class SVCPathCV(PathSearch, TunedClassifier):
    """Support vector classifier with the C that minimises the cross-validated error, exactly.

    The error over the folds is a step function of C. Instead of being sampled on a grid it is
    computed as a whole from the regularization paths of the folds (J.-B. Yang and C.-J. Ong 2011),
    so its minimum is *the* minimum; a certificate says how sure that is. It stands where
    ``GridSearchCV(SVC(), {"C": ..., "gamma": ...})`` stood.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVC.
    gamma : float, "scale", "auto" or a sequence of these, default="scale"
        A sequence is a grid, with the exact best C for each of its members; of equals the first.
    C_range : tuple of two floats, optional
        Smallest and largest C; by default from 2**-9 to 2**8.
    cv : int, splitter or iterable, default=5
        Folds as of ``GridSearchCV``; with ``groups`` a number makes folds of whole groups.
    scoring : str, tuple or None, default=None
        None is the error, of which ``best_score_`` is the accuracy. Scorers of scikit-learn:
        "accuracy", "balanced_accuracy", "precision", "recall", "f1", "matthews_corrcoef" and
        "roc_auc". Losses: "error", "balanced_error" and ("weighted_error", weight of the negative
        class).
    rule : {"first", "largest-lambda", "widest", "one-standard-error"}, default="first"
        Which of all best C to take. "first" is the middle of the best interval with the smallest C,
        "widest" that of the widest, "one-standard-error" that of the widest interval within one
        standard error (over folds) of the best value. "largest-lambda" is the rule of J.-B. Yang's
        thesis: the largest lambda = 1 / C that is best, which lies on the edge of its interval. A
        solver with a tolerance may score differently there, so the default stays in the middle.
    pool : {"folds", "samples"}, default="folds"
        Mean of the folds' values, or the value for the predictions of all folds together.
    preprocessor : transformer or None, default=None
        Learned anew from the training part of every fold, such as StandardScaler() or a Pipeline,
        so that nothing of the test part is seen before; ``best_estimator_`` is a Pipeline then.
    n_jobs : int or None, default=None
        Processes over folds and gammas; the result is the same for any number.
    probability : bool, default=False
        Whether ``predict_proba`` is asked for: the best machine is calibrated over the same folds,
        by a sigmoid (``CalibratedClassifierCV``), where every row is in one test part.
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        The range as 1 / C, in place of ``C_range``.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply C, as in SVC. Balanced ones are those of each training part. They make
        the two classes equally heavy up to rounding: for a C so small that every sample is on its
        bound, rounding alone decides the intercept of SVC, and the certificate may stay open. Raise
        the smallest C of ``C_range`` then.
    refit : bool, default=True
        Whether to train ``best_estimator_`` on all samples.

    Attributes
    ----------
    best_C_ : float
        A point inside ``best_interval_``.
    best_gamma_ : float or str
        The gamma it belongs to.
    best_params_ : dict
        Both, to be written into SVC.
    best_score_ : float
        What ``GridSearchCV`` calls so: greater is better, and losses are negative.
    best_interval_ : IntervalOfC
        All C that are as good.
    curve_ : ValidationCurve
        The exact curve for the best gamma; without ``scoring`` it is that of the error.
    curves_ : list of ValidationCurve
        One for each gamma.
    certificate_ : Certificate
        What is proved of the optimum; printed, it is a sentence. ``certificate_.problem`` states
        what it is proved for.
    cv_results_ : dict
        As of ``GridSearchCV``, for the powers of two of the range and the best C of each gamma.
    best_index_ : int
        The row of ``best_params_`` there.
    n_splits_ : int
        Number of folds.
    best_estimator_ : SVC
        Trained on all samples; a Pipeline where there is a preprocessor.
    calibrated_estimator_ : CalibratedClassifierCV
        Where ``probability`` is asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = SVCPathCV("linear", cv=3, preprocessor=StandardScaler()).fit(X[:150], y[:150])
    >>> round(search.best_score_, 4)
    0.9667
    >>> search.certificate_
    error 0.03333 for every C in [0.00942, 0.0123]; no C in [0.001953, 256] is better: proved
    """

    _constraints: ClassVar[Constraints] = {"rule": one_of(*RULES)}

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        gamma: Any = "scale",
        C_range: tuple[float, float] | None = None,
        cv: Any = 5,
        scoring: str | tuple[str, float] | None = None,
        rule: str = "first",
        pool: str = "folds",
        preprocessor: Any = None,
        n_jobs: int | None = None,
        probability: bool = False,
        lambda_range: tuple[float, float] = RANGE,
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        refit: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.C_range = C_range
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.pool = pool
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs
        self.probability = probability
        self.lambda_range = lambda_range
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.refit = refit

    @available_if(_with_probability)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, calibrated on predictions for held-out rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        self._best()
        return self.calibrated_estimator_.predict_proba(self._rows(X))

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        rows = super()._begin(X, y, sample_weight)
        check_size(type(self).__name__, len(rows.y))
        return rows

    def _refit(self, rows: TuningRows, splits: Sequence[Fold]) -> None:
        super()._refit(rows, splits)
        if not self.probability:
            return
        # a sigmoid is fitted to decision values of held-out rows
        tested = np.sort(np.concatenate([test for _, test in splits]))
        fewest, folds = int(np.unique(rows.y, return_counts=True)[1].min()), splits
        if not np.array_equal(tested, np.arange(len(rows.y))):
            if fewest < 2:
                raise InvalidTarget(
                    f"{type(self).__name__} with probability=True needs two samples of every "
                    "class, or a cv that has every sample in one test part."
                )
            folds = StratifiedKFold(min(5, fewest))
        model = CalibratedClassifierCV(self._best_model(len(rows.y)), ensemble=False, cv=folds)
        with retold():
            self.calibrated_estimator_ = model.fit(rows.X, rows.y, rows.sample_weight)

    def _explore(self, gamma: Any, rows: TuningRows, split: Fold) -> FoldFound:
        fold = self._fold(gamma, rows, split)
        audits = [PathAudit.of(path.solution) for path in fold.machines.paths]
        return FoldFound(fold.steps(self.scoring, (0, 1, -1)), audits)

    def _tried(
        self, gamma: Any, found: list[FoldFound], splits: list[Fold], rows: TuningRows
    ) -> TriedGamma:
        counted: list[list[StepCounts]] = [one.values for one in found]
        audits = [audit for one in found for audit in one.audits]
        score = scorer(self.scoring)
        (curve, values), (high, _), (low, _) = (
            curve_of(steps, *score, self.pool) for steps in zip(*counted, strict=True)
        )
        interval = choose(curve, values, self.rule)
        chosen = C = interval.middle
        if self.rule == "largest-lambda":
            chosen = C = largest_lambda(interval, low)
        # a rule may prefer a C that is not quite the best; what is certified is the best
        if self.rule == "one-standard-error":
            C = max(curve.argmin, key=lambda interval: interval.width).middle
        proof = certify(curve, C, high, low, audits, self._lambdas[0], words_of(self.scoring))
        trials = self._trials(chosen, [steps[0] for steps in counted])
        return TriedGamma(gamma, curve, interval, chosen, proof, trials)

    def _trials(self, C: float, folds: list[StepCounts]) -> FoldTrials:
        """What the points of a grid are worth, with the divisions of scikit-learn."""
        points = self._trial_points(C)
        function, sign = graded(self.scoring)
        curves = [curve_of([fold], function, sign > 0, "folds")[0] for fold in folds]
        scores = sign * np.array([curve(points) for curve in curves]).T
        if self.pool == "folds":
            return FoldTrials(points, scores, np.average(scores, axis=1))
        pooled = curve_of(folds, function, sign > 0, "samples")[0]
        return FoldTrials(points, scores, sign * pooled(points))


def choose(curve: ValidationCurve, fold_values: Array, rule: str) -> IntervalOfC:
    """The interval of C that the rule prefers."""
    if rule in ("first", "largest-lambda"):
        return curve.argmin[0]
    level = curve.best
    if rule == "one-standard-error" and len(fold_values) > 1:
        piece = int(np.argmax(np.isclose(curve.values, level, rtol=0, atol=1e-12)))
        error = fold_values[:, piece].std(ddof=1) / np.sqrt(len(fold_values))
        level += -error if curve.greater_is_better else error
    return max(curve.within(level), key=lambda interval: interval.width)


def largest_lambda(interval: IntervalOfC, pessimistic: ValidationCurve) -> float:
    """The smallest C of a best interval whose value is certain, or the smallest if none is."""
    level = float(pessimistic(interval.middle))
    certain = [one for one in pessimistic.within(level) if one.low <= interval.middle <= one.high]
    low = max(interval.low, certain[0].low) if certain else interval.low
    if low == pessimistic.breakpoints[0]:
        return low
    return min(low * (1 + INSIDE), interval.middle)
