"""What a criterion promises a search.

Three capabilities, because the field has three kinds of criteria and none reduces to another:

* a :class:`ForwardCriterion` says what *adding* each candidate brings (mRMR, CMIM, ...);
* a :class:`BackwardCriterion` says what *removing* each member costs, one training for all members
  (sensitivities, weights, bounds);
* a :class:`SubsetCriterion` values any subset, so gain and loss follow (scatter, divergence, joint
  information, cross-validation).

Subsets are sorted indices of *units*. Unit j is column j; a criterion that reads its data through
:meth:`Criterion.columns` will score whole groups of columns when units become groups.

A score is a function of the subset alone. Random draws are made by label (seed, subset), see
:func:`tamis._random.stream`, so that a result is the same after a resume, for any ``n_jobs`` and in
any order. A criterion may keep what it computed for the last subset and update it, but caches never
change results.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tamis._arrays import Array, Mask, Subset, idle_columns, target_kind
from tamis.contract.cost import Cost
from tamis.exceptions import InvalidParameter, InvalidTarget

TASKS = frozenset({"classification", "regression"})


class Criterion(BaseEstimator, ABC):
    """How good features are: parameters in ``__init__``, data in ``fit``, greater is better.

    A subclass implements :meth:`_learn` and the methods of its capability. The class facts below
    are checked, together with the capability, before any work; a criterion that wraps an estimator
    makes them properties.
    """

    #: Whether ``fit`` needs ``y``.
    needs_target: ClassVar[bool] = True
    #: Kinds of target that can be used: "classification", "regression" or both.
    targets: ClassVar[frozenset[str]] = TASKS
    #: Whether ``fit`` can use sample weights, row groups and the like.
    takes_metadata: ClassVar[bool] = False
    #: Set by ``fit``: which units tell nothing beside the others, because they are constant or copy
    #: one before them. Searches add them last and drop them first.
    idle_: Mask

    def check(self) -> None:
        """Refuse parameters that cannot work, before any data are seen."""

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Learn the data; ``params`` are per-row metadata such as ``sample_weight``."""
        self.check()
        X, y = check_data(self, X, y)
        self.task_ = check_target(self, y)
        params = {name: value for name, value in params.items() if value is not None}
        if params and not self.takes_metadata:
            names = ", ".join(sorted(params))
            raise InvalidParameter(
                f"{type(self).__name__} cannot use {names}: it trains no estimator. "
                f"Leave {names} out, or use a criterion such as CrossValidated or Importances."
            )
        self.idle_ = idle_columns(X)
        self._learn(X, y, **params)
        return self

    @abstractmethod
    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        """Keep what scores need of finite, float64, column-major ``X`` and of ``y``."""

    @property
    def n_units_(self) -> int:
        """Number of units that can be scored."""
        return int(self.n_features_in_)

    def columns(self, subset: Subset) -> Subset:
        """Columns of the units of a subset."""
        return subset

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        """What learning a table of this size and scoring every column so many times takes.

        In a round each column is scored once, added to few or, by a criterion that only scores
        removals, removed from all. Classes are taken to be two. None where nobody can say.
        """
        return None

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose hyper-parameters anew for the subset, use them, and say which."""
        return {}

    def use(self, params: dict[str, Any]) -> None:
        """Use parameters that an earlier :meth:`tune` chose."""

    def errors(self, subset: Subset) -> Array | None:
        """Standard errors of the scores last given for the subset, where they are known."""
        return None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        return tags


class ForwardCriterion(Criterion):
    """Criterion that scores additions."""

    @abstractmethod
    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """What adding each candidate to the subset brings."""


class BackwardCriterion(Criterion):
    """Criterion that scores removals."""

    @abstractmethod
    def loss(self, subset: Subset) -> Array:
        """Quality lost by removing each member of the subset (not a loss function)."""


class SubsetCriterion(ForwardCriterion, BackwardCriterion):
    """Criterion that values any subset, the empty one included.

    ``gain``, ``loss``, ``values`` and ``bounds`` follow; a subclass may override them for speed,
    and the laws hold each shortcut to its definition here.
    """

    #: Whether the value of a subset is the sum of the values of its members.
    additive: ClassVar[bool] = False
    #: Whether scores are -log p-values, which the choice ``FalseDiscovery`` needs.
    scores_are_log_p: ClassVar[bool] = False

    @property
    def monotone(self) -> bool:
        """Whether a subset is never worth more than a set that contains it."""
        return False

    @abstractmethod
    def value(self, subset: Subset) -> float:
        """Quality of the subset."""

    def values(self, subsets: Iterable[Subset]) -> Array:
        """Quality of many subsets: the one place to remember and to parallelise."""
        return np.array([self.value(subset) for subset in subsets])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        base, *grown = self.values([subset, *(with_unit(subset, j) for j in candidates)])
        return difference(np.array(grown), base)

    def loss(self, subset: Subset) -> Array:
        base, *shrunk = self.values([subset, *(subset[subset != j] for j in subset)])
        return -difference(np.array(shrunk), base)

    def bound(self, subset: Subset, size: int) -> float:
        """The most that any subset of ``size`` units inside ``subset`` can be worth.

        The default is right for a monotone criterion.
        """
        return self.value(subset)

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        """Bounds of many subsets."""
        return np.array([self.bound(subset, size) for subset in subsets])


def with_unit(subset: Subset, unit: int) -> Subset:
    """The subset and one more unit, sorted."""
    return np.insert(subset, np.searchsorted(subset, unit), unit)


def difference(values: Array, base: float) -> Array:
    """values - base, where infinity less infinity is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(values == base, 0.0, values - base)


def check_data(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None
) -> tuple[Array, NDArray[Any] | None]:
    """Finite float64 column-major ``X`` and one-dimensional ``y``, checked by scikit-learn."""
    options = {"dtype": np.float64, "order": "F", "ensure_min_samples": 2}
    with np.errstate(invalid="ignore"):  # it looks for infinity by a sum, which may overflow
        if y is None and not estimator.__sklearn_tags__().target_tags.required:
            return validate_data(estimator, X, **options), None
        checked: tuple[Array, NDArray[Any]] = validate_data(estimator, X, y, **options)
    return checked


def check_target(criterion: Criterion, y: NDArray[Any] | None) -> str:
    """The task as the criterion will read it: "none", "classification" or "regression"."""
    if y is None:
        return "none"
    name = type(criterion).__name__
    try:
        looks, _ = target_kind(y), np.unique(y)
    except TypeError as error:  # labels of several types have no order
        raise InvalidTarget(
            f"{name} needs labels of one type, but y mixes several ({error}). Convert it, for "
            "example with y.astype(str)."
        ) from error
    asked = getattr(criterion, "task", "auto")
    if asked not in {"auto", *TASKS}:
        raise InvalidParameter(
            f"{name} needs task='auto', 'classification' or 'regression', not {asked!r}."
        )
    kind = looks if asked == "auto" else asked
    if len(criterion.targets) == 1:
        (kind,) = criterion.targets
        if asked not in {"auto", kind}:
            raise InvalidParameter(f"{name} can only do {kind}: write task={kind!r} or leave it.")
    if kind == "classification" and criterion.needs_target:
        _check_classes(criterion, y, looks)
    if kind == "regression" and not np.issubdtype(y.dtype, np.number):
        raise InvalidTarget(
            f"{name} needs a numeric target, but y holds labels such as {str(y[0])!r}. Use a "
            "criterion for classes, or convert y with y.astype(float)."
        )
    return kind


def _check_classes(criterion: Criterion, y: NDArray[Any], looks: str) -> None:
    """Refuse a target that is no set of at least two classes, unless it is said to be one."""
    name, asked = type(criterion).__name__, getattr(criterion, "task", None)
    if looks == "regression":
        if np.issubdtype(y.dtype, np.floating) and not (y == np.rint(y)).all():
            raise InvalidTarget(
                f"{name} needs classes, but y holds real numbers such as {y[0]}. Use a criterion "
                "for regression (Correlation, MutualInformation), or cut y into classes."
            )
        if asked != "classification":
            write = "task='classification'" if asked else "y.astype(str)"
            raise InvalidTarget(
                f"{name} needs classes, but y holds {len(np.unique(y))} different numbers such as "
                f"{y[0]}, as a regression target does. Write {write} to take each as a class, or "
                "use a criterion for regression (Correlation, MutualInformation)."
            )
    if len(labels := np.unique(y)) < 2:
        raise InvalidTarget(
            f"{name} needs at least two classes, but every sample has the class "
            f"{str(labels[0])!r}: there is nothing to tell apart. Check the target column, or the "
            "split it came from."
        )
