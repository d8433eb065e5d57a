"""What classifiers with a tuned C share: folds, paths of a fold, the machine at the end."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.folds.rows import Fold, retold
from tamis.svm.curves.scores import check_scoring
from tamis.svm.curves.steps import StepCounts
from tamis.svm.kernels import resolve_kernel
from tamis.svm.machine import most_steps
from tamis.svm.pairs import PairwisePaths, pairwise_paths
from tamis.svm.path.base import checked, checked_rows, lambdas_of
from tamis.svm.searching import fold_rows, splits_of
from tamis.svm.svc import box, encode

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

    def _begin(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, NDArray[Any], NDArray[np.int64], Array]:
        """Validate everything before any work."""
        X, y = self._checked(X, y)
        name = type(self).__name__
        lambdas_of(self)
        self.classes_, target = encode(name, y)
        check_scoring(name, self.scoring, len(self.classes_))
        if self.pool not in POOLS:
            raise InvalidParameter(f"{name} needs pool among {POOLS}; got {self.pool!r}.")
        return X, y, target, box(name, self.class_weight, X, y, target, sample_weight)

    def _splits(
        self,
        X: Any,
        y: NDArray[Any],
        target: NDArray[np.int64],
        bounds: Array,
        groups: Any = None,
    ) -> list[Fold]:
        """The folds; every class has to be in every training part, with a weight."""
        with retold(), np.errstate(invalid="ignore"):  # a cast of large numbers, as in encode
            splits = splits_of(self.cv, X, y, groups, classifier=True)
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
        rows = fold_rows(self, X, target, split)
        name = type(self).__name__
        kernel = resolve_kernel(name, self.kernel, gamma, self.degree, self.coef0, rows.train)
        train, test = split
        machines = pairwise_paths(
            kernel, rows.train, target[train], bounds[train], lambdas_of(self), bracketed=True
        )
        return PathFold(machines, rows.test, target[test], rows.own)

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
