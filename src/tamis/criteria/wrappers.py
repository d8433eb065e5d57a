"""Criteria that wrap another criterion or a function: Remembered, Penalised and Scored."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if

from tamis._arrays import Array, Mask, Subset
from tamis._checks import Constraints, number
from tamis._parallel import parallel_map
from tamis.blocks.table import BlockTable
from tamis.contract import SubsetCriterion
from tamis.contract.criterion import TASKS
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidScore


def _fact(name: str, default: Any) -> Any:
    """Return a property that reads an attribute of the wrapped criterion."""
    return property(lambda wrapper: getattr(wrapper.criterion, name, default))


class Wrapper(SubsetCriterion):
    """Base class of criteria that wrap another criterion and have the same class attributes."""

    criterion: SubsetCriterion

    needs_target = _fact("needs_target", True)
    targets = _fact("targets", TASKS)
    takes_metadata = _fact("takes_metadata", False)
    takes_missing = _fact("takes_missing", False)
    takes_categories = _fact("takes_categories", False)
    takes_sparse = _fact("takes_sparse", False)
    takes_blocks = _fact("takes_blocks", False)
    takes_several_targets = _fact("takes_several_targets", False)
    reads_scale = _fact("reads_scale", False)
    additive = _fact("additive", False)
    monotone = _fact("monotone", False)
    opinion = _fact("opinion", "")
    task = _fact("task", "auto")

    def check(self) -> None:
        super().check()
        if not isinstance(self.criterion, SubsetCriterion):
            raise IncompatibleCriterion(
                f"{type(self).__name__} needs a criterion that scores subsets, such as Scatter or "
                f"CrossValidated, not {self.criterion!r}."
            )
        self.criterion.check()

    def _fit_inside(self, X: Any, y: NDArray[Any] | None = None, **params: Any) -> None:
        """Fit a clone of the wrapped criterion."""
        self.criterion_ = clone(self.criterion).grouped(self._unit_columns).fit(X, y, **params)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._fit_inside(X, y, **params)
        self.idle_ = self.criterion_.idle_

    def _check_blocks(self) -> None:
        self.criterion._check_blocks()

    def _learn_blocks(self, table: BlockTable) -> None:
        self._fit_inside(table)

    def _idle_units(self, table: BlockTable) -> Mask:
        return self.criterion_.idle_

    def cost(self, n_samples: int, n_features: int) -> float | None:
        return self.criterion.cost(n_samples, n_features)

    def columns(self, subset: Subset) -> Subset:
        return self.criterion_.columns(subset)

    def second_opinion(self, subset: Subset, units: Subset) -> Array:
        return self.criterion_.second_opinion(subset, units)

    def tune(self, subset: Subset) -> dict[str, Any]:
        return self.criterion_.tune(subset)

    def use(self, params: dict[str, Any]) -> None:
        self.criterion_.use(params)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return a router that passes the metadata of ``fit`` to the wrapped criterion."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(criterion=self.criterion, method_mapping=mapping)


@dataclass(eq=False, repr=False)
class Remembered(Wrapper):
    """Cache of a criterion's values, so that no subset is evaluated twice.

    It helps with slow criteria in searches that return to earlier subsets.

    Parameters
    ----------
    criterion : SubsetCriterion
        Criterion whose values are cached.

    Attributes
    ----------
    n_computed_ : int
        Number of values that were computed, not read from the cache.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> criterion = Remembered(Scatter("J3")).fit(*load_iris(return_X_y=True))
    >>> criterion.values([np.array([0, 1]), np.array([2]), np.array([0, 1])]).round(2)
    array([ 6.33, 17.06,  6.33])
    >>> criterion.n_computed_
    2
    """

    criterion: SubsetCriterion

    scores_are_log_p = _fact("scores_are_log_p", False)

    def _fit_inside(self, X: Any, y: NDArray[Any] | None = None, **params: Any) -> None:
        super()._fit_inside(X, y, **params)
        self._memory: dict[bytes, float] = {}
        self.n_computed_ = 0

    def value(self, subset: Subset) -> float:
        return float(self.values([subset])[0])

    def values(self, subsets: Iterable[Subset]) -> Array:
        keyed = [(np.asarray(subset, dtype=np.intp).tobytes(), subset) for subset in subsets]
        new = {key: subset for key, subset in keyed if key not in self._memory}
        if new:
            values = self.criterion_.values(list(new.values()))
            self._memory.update(zip(new, values.tolist(), strict=True))
            self.n_computed_ += len(new)
        return np.array([self._memory[key] for key, _ in keyed])

    def bound(self, subset: Subset, size: int) -> float:
        return self.criterion_.bound(subset, size)

    @available_if(lambda wrapper: hasattr(wrapper.criterion, "fold_scores"))
    def fold_scores(self, subset: Subset) -> Array:
        """Return the score of each fold on a subset, if the wrapped criterion has folds."""
        return self.criterion_.fold_scores(subset)

    @property
    def test_ratio(self) -> float:
        """Mean over the folds of the number of test rows per training row."""
        return self.criterion_.test_ratio

    def tune(self, subset: Subset) -> dict[str, Any]:
        self._memory.clear()
        return super().tune(subset)

    def use(self, params: dict[str, Any]) -> None:
        self._memory.clear()
        super().use(params)


@dataclass(eq=False, repr=False)
class Penalised(Wrapper):
    """Criterion minus a penalty for each feature, so that small subsets can score best.

    Parameters
    ----------
    criterion : SubsetCriterion
        Criterion to penalise.
    per_feature : float, default=0.01
        Penalty for each feature, in units of the criterion.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> criterion = Penalised(Scatter("J3"), per_feature=2.0).fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([2]), np.array([0, 1, 3])).round(2)
    array([6.31, 4.8 , 2.73])
    """

    criterion: SubsetCriterion
    _: KW_ONLY
    per_feature: float = 0.01

    _constraints: ClassVar[Constraints] = {"per_feature": number()}

    @property
    def monotone(self) -> bool:
        """Whether the wrapped criterion is monotone and the penalty is not positive."""
        return super().monotone and self.per_feature <= 0

    def value(self, subset: Subset) -> float:
        return self.criterion_.value(subset) - self.per_feature * len(subset)

    def values(self, subsets: Iterable[Subset]) -> Array:
        subsets = list(subsets)
        sizes = np.array([len(subset) for subset in subsets])
        return self.criterion_.values(subsets) - self.per_feature * sizes

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        return self.criterion_.gain(subset, candidates) - self.per_feature

    def loss(self, subset: Subset) -> Array:
        return self.criterion_.loss(subset) - self.per_feature

    def bound(self, subset: Subset, size: int) -> float:
        return self.criterion_.bound(subset, size) - self.per_feature * size


@dataclass(eq=False, repr=False)
class Scored(SubsetCriterion):
    """Criterion defined by a function: the value of a subset is ``function(X[:, subset], y)``.

    Parameters
    ----------
    function : callable
        Function of the subset's columns and ``y`` that returns a number; greater is better.
    empty : float, default=0
        Value of the empty subset, for which the function is not called.
    n_jobs : int or None, default=None
        Number of processes that compute the subsets of a step. With more than one process, the
        function must be importable.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> widest = Scored(lambda X, y: X.var(axis=0).sum())
    >>> Forward(widest, n_features_to_select=1, standardize=False).fit(X, y).get_support()
    array([False, False,  True, False])
    """

    function: Callable[[Array, Any], float]
    _: KW_ONLY
    empty: float = 0.0
    n_jobs: int | None = None

    needs_target = False

    def check(self) -> None:
        if not callable(self.function):
            raise InvalidParameter(
                f"Scored needs a function of (X, y), not {self.function!r}. Write "
                "Scored(lambda X, y: ...)."
            )

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._X, self._y = X, y

    def value(self, subset: Subset) -> float:
        if len(subset) == 0:
            return float(self.empty)
        found = self.function(self._X[:, self.columns(subset)], self._y)
        try:
            return float(found)
        except (TypeError, ValueError) as error:
            raise InvalidScore(
                f"Scored needs a function that returns one number, not {type(found).__name__}. "
                "Write return float(...), greater for better columns."
            ) from error

    def values(self, subsets: Iterable[Subset]) -> Array:
        return np.array(parallel_map(self.value, [(s,) for s in subsets], self.n_jobs))
