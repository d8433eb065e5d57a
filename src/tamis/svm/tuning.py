"""What classifiers with a tuned C share: folds, paths of a fold, the machine at the end."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.folds.rows import Fold, retold
from tamis.svm.curves.scores import check_scoring
from tamis.svm.curves.steps import StepCounts
from tamis.svm.kernels import resolve_kernel
from tamis.svm.machine import most_steps
from tamis.svm.pairs import PairwisePaths, pairwise_paths
from tamis.svm.path.base import checked, checked_rows, lambdas_of
from tamis.svm.searching import TuningRows, fold_rows, splits_of
from tamis.svm.svc import box, encode

POOLS = ("folds", "samples")


class PathFold(NamedTuple):
    """The paths of one training part, and the part on which they are validated."""

    machines: PairwisePaths
    X: Array
    target: NDArray[np.int64]
    own: Array | None  # kernel of the points with themselves, where precomputed
    weight: Array | None = None  # of the points in the score

    def steps(self, scoring: object, ways: tuple[int, ...] = (0,)) -> list[StepCounts]:
        """Correct predictions along the path, as :meth:`PairwisePaths.steps`."""
        return self.machines.steps(self.X, self.target, scoring, ways, self.own, self.weight)


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

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        return checked(self, X, y)

    def _rows(self, X: ArrayLike) -> Any:
        return checked_rows(self, X)

    def _machine_of(self, machine: SVC) -> Any:
        return machine

    def _train(self, machine: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> Any:
        with retold():
            return machine.fit(X, y, sample_weight)

    def _machine(self) -> SVC:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} with refit=False has no best_estimator_. "
                "Fit it with refit=True to predict."
            )
        return self.best_estimator_

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        """Validate everything before any work."""
        X, y = self._checked(X, y)
        name = type(self).__name__
        lambdas_of(self)
        self.classes_, target = encode(name, y)
        check_scoring(name, self.scoring, len(self.classes_))
        if self.pool not in POOLS:
            raise InvalidParameter(f"{name} needs pool among {POOLS}; got {self.pool!r}.")
        rows = TuningRows(X, y, target, _check_sample_weight(sample_weight, X, dtype=np.float64))
        self._bounds(rows)  # refuses weights that no machine can have
        return rows

    def _bounds(self, rows: TuningRows, part: Any = slice(None)) -> Array:
        """Upper bounds of the samples of a training part; class weights are those of the part."""
        own = rows.y[part], rows.target[part], rows.weight[part]
        return box(type(self).__name__, self.class_weight, *own)

    def _splits(self, rows: TuningRows, groups: Any = None) -> list[Fold]:
        """The folds; every class has to be in every training part, with a weight."""
        with retold(), np.errstate(invalid="ignore"):  # a cast of large numbers, as in encode
            splits = splits_of(self, rows, groups, classifier=True)
        target, weight = rows.target, rows.weight
        for k, (train, test) in enumerate(splits):
            lacking = np.setdiff1d(target, target[train][weight[train] > 0])
            if len(lacking):
                raise InvalidTarget(
                    f"{type(self).__name__} needs every class in every training part; fold {k} "
                    f"trains without class {str(self.classes_[lacking[0]])!r}, or without a weight "
                    "for it. Use fewer folds or StratifiedKFold."
                )
            if self.scoring == "roc_auc" and len(np.unique(target[test][weight[test] > 0])) < 2:
                raise InvalidTarget(
                    f"{type(self).__name__} needs both classes in every test part for roc_auc; "
                    f"fold {k} has one, or a weight for one. Use fewer folds or StratifiedKFold."
                )
        return splits

    def _fold(self, gamma: Any, rows: TuningRows, split: Fold) -> PathFold:
        """Paths of one training part, with gamma and class weights resolved on it as SVC would."""
        parts = fold_rows(self, rows.X, rows.y, split)
        numbers = self.kernel, gamma, self.degree, self.coef0
        kernel = resolve_kernel(type(self).__name__, *numbers, parts.train)
        train, test = split
        bounds, lambdas = self._bounds(rows, train), lambdas_of(self)
        own = parts.train, rows.target[train], bounds
        machines = pairwise_paths(kernel, *own, lambdas, bracketed=True)
        weight = rows.weight[test] / rows.weight.max()
        return PathFold(machines, parts.test, rows.target[test], parts.own, weight)

    def _best_machine(self, n_rows: int) -> Any:
        """An untrained machine with the best C."""
        machine = SVC(
            C=self.best_C_,
            kernel=self.kernel,
            gamma=self.best_gamma_,
            degree=self.degree,
            coef0=self.coef0,
            class_weight=self.class_weight,
            cache_size=500,
            max_iter=most_steps(n_rows),
        )
        return self._machine_of(machine)

    def _refit(self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        self.best_estimator_ = self._train(self._best_machine(len(y)), X, y, sample_weight)
