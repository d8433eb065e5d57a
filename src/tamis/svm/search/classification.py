"""Search for the C of a support vector classifier with the provably best cross-validated score."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from tamis.svm.inputs import check_size, encode_classes, weigh_classes
from tamis.svm.path.problems import PathFold, pairwise_paths
from tamis.svm.search.base import FoldFound, PathSearch, TunedSVM, TuningRows
from tamis.validation.splits import Fold, reword_warnings

RULES = ("first", "largest-lambda", "widest", "one-standard-error")
#: With rule="largest-lambda", the selected C exceeds the lower end of the interval by this share of
#: C. Exactly at the end, a decision value is 0, and the predicted label could depend on rounding.
INSIDE = 1e-9


class TunedClassifier(ClassifierMixin, TunedSVM):
    """Base class of support vector classifiers whose C is chosen by cross-validation."""

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the decision values of the SVM with the best C."""
        return self._best().decision_function(self._rows(X))

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        rows = super()._begin(X, y, sample_weight)
        name = type(self).__name__
        self.classes_, target = encode_classes(name, rows.y)
        check_scoring(name, self.scoring, len(self.classes_))
        self._bounds(rows)  # refuses invalid weights
        return rows._replace(target=target)

    def _bounds(self, rows: TuningRows, part: Any = slice(None)) -> Array:
        """Return the weights that multiply C for the samples in ``part``.

        Balanced class weights are computed from these samples.
        """
        name = type(self).__name__
        return weigh_classes(name, self.class_weight, rows.y[part], rows.weight[part])

    def _splits(self, rows: TuningRows, groups: Any = None) -> list[Fold]:
        """Return the folds. Refuse a training fold in which a class is missing or has no weight."""
        splits = super()._splits(rows, groups)
        target, weight, name = rows.target, rows.weight, type(self).__name__
        for k, (train, test) in enumerate(splits):
            lacking = np.setdiff1d(target, target[train][weight[train] > 0])
            if len(lacking):
                raise InvalidTarget(
                    f"{name} needs every class in every training fold; fold {k} trains without "
                    f"class {str(self.classes_[lacking[0]])!r}, or without a weight for it. Use "
                    "fewer folds or StratifiedKFold."
                )
            if self.scoring == "roc_auc" and len(np.unique(target[test][weight[test] > 0])) < 2:
                raise InvalidTarget(
                    f"{name} needs both classes in every test fold for roc_auc; fold {k} has "
                    "samples of positive weight in only one. Use fewer folds or StratifiedKFold."
                )
        return splits

    def _fold(self, gamma: Any, rows: TuningRows, split: Fold) -> PathFold:
        """Return the paths of one training fold, with its test rows.

        Gamma and class weights are computed from the training rows of the fold.
        """
        (train, test), (inner, outer, own) = split, self._fold_rows(rows, split)
        known = inner, rows.target[train], self._bounds(rows, train)
        kernel = self._resolve(inner, gamma)
        machines = pairwise_paths(kernel, *known, self._lambdas, bracketed=True)
        weight = rows.weight[test] / rows.weight.max()
        return PathFold(machines, outer, rows.target[test], own, weight)


def _with_probability(search: "SVCPathCV") -> bool:
    if not search.probability:
        raise AttributeError(
            f"{type(search).__name__} has predict_proba only with probability=True, "
            "which calibrates the best SVM."
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class SVCPathCV(PathSearch, TunedClassifier):
    """Support vector classifier with the C that exactly minimises the cross-validated error.

    The cross-validated error is a step function of C. It is computed at every C from the
    regularization paths of the folds (J.-B. Yang and C.-J. Ong 2011), not sampled on a grid. So its
    global minimum is found, and a certificate states what is proved. Use this class in place of
    ``GridSearchCV(SVC(), {"C": ..., "gamma": ...})``.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "precomputed"}, default="rbf"
        The kernel, as in SVC.
    gamma : float, "scale", "auto" or a sequence of these, default="scale"
        Width of the kernels "rbf" and "poly". If a sequence is given, the best C is found for each
        gamma, and the gamma with the best value is used. Ties go to the first gamma.
    C_range : tuple of two floats, optional
        Smallest and largest C. The default is 2**-9 to 2**8.
    cv : int, splitter or iterable, default=5
        Folds, as in ``GridSearchCV``. If ``fit`` gets ``groups``, an int makes folds that keep each
        group together.
    scoring : str, tuple or None, default=None
        Score to maximise or loss to minimise. If None, the error is minimised, and ``best_score_``
        is the accuracy. Supported scorers of scikit-learn are "accuracy", "balanced_accuracy",
        "precision", "recall", "f1", "matthews_corrcoef" and "roc_auc". Supported losses are
        "error", "balanced_error" and ("weighted_error", weight of the negative class).
    rule : {"first", "largest-lambda", "widest", "one-standard-error"}, default="first"
        Rule that selects C among equally good values, which form one or several intervals:

        * "first" selects the middle of the interval with the smallest values of C.
        * "widest" selects the middle of the widest interval.
        * "one-standard-error" selects the middle of the widest interval on which the value is
          within one standard error (over the folds) of the best value.
        * "largest-lambda" selects the smallest C, which is the largest lambda = 1 / C. This is the
          rule of J.-B. Yang's thesis. This C lies at the end of an interval. A solver with a
          tolerance may have a different score there.
    pool : {"folds", "samples"}, default="folds"
        "folds" averages the values of the folds. "samples" computes a single value from the
        predictions of all folds together.
    preprocessor : transformer or None, default=None
        Transformer such as StandardScaler() or a Pipeline. It is fitted to the training rows of
        each fold, so that test rows do not influence it. If given, ``best_estimator_`` is a
        Pipeline.
    n_jobs : int or None, default=None
        Number of processes that work on folds and gammas. The result does not depend on it.
    probability : bool, default=False
        Whether to provide ``predict_proba``. The best SVM is calibrated with a sigmoid
        (``CalibratedClassifierCV``). The calibration uses the same folds if every row is in exactly
        one test fold.
    lambda_range : tuple of two floats, default=(2**-8, 2**9)
        Smallest and largest lambda = 1 / C, an alternative to ``C_range``.
    degree : int, default=3
        Degree of the kernel "poly".
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply C for each class, as in SVC. Balanced weights are computed on each
        training fold. They give all classes the same total weight up to rounding. If C is so small
        that the multiplier of every sample is on its bound, rounding determines the intercept
        of SVC, and the certificate may not be closed. In this case, raise the smallest C of
        ``C_range``.
    refit : bool, default=True
        Whether to train ``best_estimator_`` on all samples.

    Attributes
    ----------
    best_C_ : float
        The selected C, which lies in ``best_interval_``.
    best_gamma_ : float or str
        The best gamma.
    best_params_ : dict
        The best C and gamma, as parameters of SVC.
    best_score_ : float
        Cross-validated score at the best C, as in ``GridSearchCV``. Greater is better, so losses
        are negative.
    best_interval_ : IntervalOfC
        The interval of equally good values of C around ``best_C_``.
    curve_ : ValidationCurve
        The exact value of ``scoring`` at every C for the best gamma. If ``scoring`` is None, it is
        the error.
    curves_ : list of ValidationCurve
        The curve of each gamma.
    certificate_ : Certificate
        States whether it is proved that no C in the range is better. It prints as a sentence.
        ``certificate_.problem`` describes the problem: kernel, weights, folds and score.
    cv_results_ : dict
        Results in the format of ``GridSearchCV``. For each gamma, they include the powers of two in
        the range of C and the best C.
    best_index_ : int
        The row of ``cv_results_`` that belongs to ``best_params_``.
    n_splits_ : int
        Number of folds.
    best_estimator_ : SVC
        SVC with the best C and gamma, trained on all samples. It is a Pipeline if there is a
        preprocessor.
    calibrated_estimator_ : CalibratedClassifierCV
        Calibrated classifier. Only with ``probability=True``.

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

    rule: str = "first"
    probability: bool = False
    class_weight: dict[Any, float] | str | None = None

    @available_if(_with_probability)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, calibrated on the decision values of held-out rows.

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
        # the sigmoid is fitted to the decision values of held-out rows
        tested = np.sort(np.concatenate([test for _, test in splits]))
        fewest, folds = int(np.unique(rows.y, return_counts=True)[1].min()), splits
        if not np.array_equal(tested, np.arange(len(rows.y))):
            if fewest < 2:
                raise InvalidTarget(
                    f"{type(self).__name__} with probability=True needs two samples of every "
                    "class, or a cv that has every sample in one test fold."
                )
            folds = StratifiedKFold(min(5, fewest))
        model = CalibratedClassifierCV(self._best_model(len(rows.y)), ensemble=False, cv=folds)
        with reword_warnings():
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
        # the rule may select a C that is not the best one, but the certificate is about the best C
        if self.rule == "one-standard-error":
            C = max(curve.argmin, key=lambda interval: interval.width).middle
        proof = certify(curve, C, high, low, audits, self._lambdas[0], words_of(self.scoring))
        trials = self._trials(chosen, [steps[0] for steps in counted])
        return TriedGamma(gamma, curve, interval, chosen, proof, trials)

    def _trials(self, C: float, folds: list[StepCounts]) -> FoldTrials:
        """Return the scores at ``C`` and at the powers of two, rounded as in scikit-learn."""
        points = self._trial_points(C)
        function, sign = graded(self.scoring)
        curves = [curve_of([fold], function, sign > 0, "folds")[0] for fold in folds]
        scores = sign * np.array([curve(points) for curve in curves]).T
        if self.pool == "folds":
            return FoldTrials(points, scores, np.average(scores, axis=1))
        pooled = curve_of(folds, function, sign > 0, "samples")[0]
        return FoldTrials(points, scores, sign * pooled(points))


def choose(curve: ValidationCurve, fold_values: Array, rule: str) -> IntervalOfC:
    """Return the interval of C that the rule selects.

    ``fold_values`` has the value of each fold (row) on each piece of the curve (column).
    """
    if rule in ("first", "largest-lambda"):
        return curve.argmin[0]
    level = curve.best
    if rule == "one-standard-error" and len(fold_values) > 1:
        piece = int(np.argmax(np.isclose(curve.values, level, rtol=0, atol=1e-12)))
        error = fold_values[:, piece].std(ddof=1) / np.sqrt(len(fold_values))
        level += -error if curve.greater_is_better else error
    return max(curve.within(level), key=lambda interval: interval.width)


def largest_lambda(interval: IntervalOfC, pessimistic: ValidationCurve) -> float:
    """Return the C for ``rule="largest-lambda"``: about the smallest C of the ``interval``.

    ``interval`` is an interval of equally good values of C. ``pessimistic`` is an upper bound on
    the error (or a lower bound on the score) at every C. If this bound is worse near the lower end
    than in the middle of the interval, the part with the worse bound is skipped.
    """
    level = float(pessimistic(interval.middle))
    certain = [one for one in pessimistic.within(level) if one.low <= interval.middle <= one.high]
    low = max(interval.low, certain[0].low) if certain else interval.low
    if low == pessimistic.breakpoints[0]:
        return low
    return min(low * (1 + INSIDE), interval.middle)
