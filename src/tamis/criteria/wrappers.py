"""Criteria made of others: remembered, penalised, or given as a function."""

from collections.abc import Callable, Iterable
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
    """Make a property with a fact of the criterion inside."""
    return property(lambda wrapper: getattr(wrapper.criterion, name, default))


class Wrapper(SubsetCriterion):
    """A criterion around another one, whose facts it shares."""

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
                f"{type(self).__name__} needs a criterion that values subsets, such as Scatter or "
                f"CrossValidated, not {self.criterion!r}."
            )
        self.criterion.check()

    def _fit_inside(self, X: Any, y: NDArray[Any] | None = None, **params: Any) -> None:
        """Fit a clone of the criterion inside."""
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
        """That of the criterion inside."""
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
        """Metadata given to ``fit`` go to the criterion inside."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(criterion=self.criterion, method_mapping=mapping)


def _cross_validates(wrapper: "Remembered") -> bool:
    return hasattr(wrapper.criterion, "fold_scores")


class Remembered(Wrapper):
    """Never value a subset twice: for criteria that are slow and searches that come back.

    Parameters
    ----------
    criterion : SubsetCriterion

    Attributes
    ----------
    n_computed_ : int
        Number of values that were computed rather than remembered.

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

    def __init__(self, criterion: SubsetCriterion):
        self.criterion = criterion

    scores_are_log_p = _fact("scores_are_log_p", False)

    def _fit_inside(self, X: Any, y: NDArray[Any] | None = None, **params: Any) -> None:
        super()._fit_inside(X, y, **params)
        self._memory: dict[bytes, float] = {}
        self.n_computed_ = 0

    def value(self, subset: Subset) -> float:
        return float(self.values([subset])[0])

    def values(self, subsets: Iterable[Subset]) -> Array:
        keyed = [(np.asarray(subset, dtype=np.intp).tobytes(), subset) for subset in subsets]
        fresh = {key: subset for key, subset in keyed if key not in self._memory}
        if fresh:
            values = self.criterion_.values(list(fresh.values()))
            self._memory.update(zip(fresh, values.tolist(), strict=True))
            self.n_computed_ += len(fresh)
        return np.array([self._memory[key] for key, _ in keyed])

    def bound(self, subset: Subset, size: int) -> float:
        return self.criterion_.bound(subset, size)

    @available_if(_cross_validates)
    def fold_scores(self, subset: Subset) -> Array:
        """Score of each fold on a subset, where the criterion inside has folds."""
        return self.criterion_.fold_scores(subset)

    @property
    def test_ratio(self) -> float:
        """Test rows for each training row of these folds."""
        return self.criterion_.test_ratio

    def tune(self, subset: Subset) -> dict[str, Any]:
        self._memory.clear()
        return super().tune(subset)

    def use(self, params: dict[str, Any]) -> None:
        self._memory.clear()
        super().use(params)


class Penalised(Wrapper):
    """A criterion less a penalty for each feature, so that the best size is not "all".

    Parameters
    ----------
    criterion : SubsetCriterion
    per_feature : float, default=0.01

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import Scatter
    >>> criterion = Penalised(Scatter("J3"), per_feature=2.0).fit(*load_iris(return_X_y=True))
    >>> criterion.gain(np.array([2]), np.array([0, 1, 3])).round(2)
    array([6.31, 4.8 , 2.73])
    """

    _constraints: ClassVar[Constraints] = {"per_feature": number()}

    def __init__(self, criterion: SubsetCriterion, *, per_feature: float = 0.01):
        self.criterion = criterion
        self.per_feature = per_feature

    @property
    def monotone(self) -> bool:
        """Only without a penalty."""
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


class Scored(SubsetCriterion):
    """A function as a criterion: the value of a subset is ``function(X[:, subset], y)``.

    Parameters
    ----------
    function : callable
        Takes the columns of the subset and ``y``, returns a number, greater is better.
    empty : float, default=0
        The value of the empty subset, for which the function is not called.
    n_jobs : int or None, default=None
        Processes for the subsets of one step; the function must then be importable.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> widest = Scored(lambda X, y: X.var(axis=0).sum())
    >>> Forward(widest, n_features_to_select=1, standardize=False).fit(X, y).get_support()
    array([False, False,  True, False])
    """

    needs_target = False

    def __init__(
        self,
        function: Callable[[Array, Any], float],
        *,
        empty: float = 0.0,
        n_jobs: int | None = None,
    ):
        self.function = function
        self.empty = empty
        self.n_jobs = n_jobs

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
                f"Scored needs a function that answers one number, not {type(found).__name__}. "
                "Let it return float(...), greater for better columns."
            ) from error

    def values(self, subsets: Iterable[Subset]) -> Array:
        return np.array(parallel_map(self.value, [(s,) for s in subsets], self.n_jobs))
