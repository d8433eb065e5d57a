"""What a criterion promises a search.

Three capabilities, because the field has three kinds of criteria and none reduces to another:

* a :class:`ForwardCriterion` says what *adding* each candidate brings (mRMR, CMIM, ...);
* a :class:`BackwardCriterion` says what *removing* each member costs, one training for all members
  (sensitivities, weights, bounds);
* a :class:`SubsetCriterion` values any subset, so gain and loss follow (scatter, divergence, joint
  information, cross-validation).

Subsets are sorted indices of *units*. Unit j is column j, unless :meth:`Criterion.grouped` says
which columns belong together: a criterion that reads its data through :meth:`Criterion.columns`
then scores whole groups.

A score is a function of the subset alone. Random draws are made by label (seed, subset), see
:func:`tamis._seeds.stream`, so that a result is the same after a resume, for any ``n_jobs`` and in
any order. A criterion may keep what it computed for the last subset and update it, but caches never
change results.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from tamis._arrays import EMPTY, Array, Mask, Subset, idle_columns, target_kind
from tamis._checks import check_parameters
from tamis.blocks.device_arrays import where_it_is
from tamis.blocks.inputs import check_data
from tamis.blocks.survival import SURVIVAL, censored_columns
from tamis.blocks.table import BlockTable, refuse_blocks
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
    #: Whether NaN may stand in the table.
    takes_missing: ClassVar[bool] = False
    #: Whether ``categories`` may name columns of codes, whose values have no order.
    takes_categories: ClassVar[bool] = False
    #: Whether the table may be sparse (CSR, CSC); it is never made dense.
    takes_sparse: ClassVar[bool] = False
    #: Whether it learns from blocks of rows, of a table that is never held at once.
    takes_blocks: ClassVar[bool] = False
    #: Whether ``y`` may have several columns, each a target.
    takes_several_targets: ClassVar[bool] = False
    #: Whether scores are computed on the device that is asked for, such as a GPU.
    runs_on_device: ClassVar[bool] = False
    #: Whether scores are about the scale of the columns, so that no search may change it.
    reads_scale: ClassVar[bool] = False
    #: Whether a loss is the fall of a score, so that removing a column of negative loss is a gain.
    loses_score: ClassVar[bool] = False
    #: What breaks ties of scores, in words, such as "squared loss on the same folds"; empty where
    #: :meth:`second_opinion` is not to be asked.
    opinion: ClassVar[str] = ""
    #: Set by ``fit``: which units tell nothing beside the others, because all their columns are
    #: constant or copy one before them. Searches add them last and drop them first.
    idle_: Mask
    #: Columns of each unit; None where every unit is a column.
    _unit_columns: tuple[Subset, ...] | None = None

    def check(self) -> None:
        """Refuse parameters that cannot work, before any data are seen.

        What a single parameter may be is declared in ``_constraints``.
        """
        check_parameters(self)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Learn the data; ``params`` are per-row metadata such as ``sample_weight``.

        Where the class says ``takes_blocks``, ``X`` may be a :class:`BlockTable`, which has the
        target too.
        """
        self.check()
        if isinstance(X, BlockTable):
            return self._fit_blocks(X)
        with where_it_is(type(self).__name__, X, y, params) as (X, y, params):
            X, y = check_data(self, X, y)
            self._check_units(X.shape[1])
            self.task_ = check_target(self, y)
            if y is not None and self.task_ == SURVIVAL and y.dtype.names is None:
                y = censored_columns(type(self).__name__, y)
            params = {name: value for name, value in params.items() if value is not None}
            if params and not self.takes_metadata:
                names = ", ".join(sorted(params))
                raise InvalidParameter(
                    f"{type(self).__name__} cannot use {names}: it trains no estimator. "
                    f"Leave {names} out, or use a criterion such as CrossValidated or Importances."
                )
            self.idle_ = self.over_units(idle_columns(X), np.all)
            self._learn(X, y, **params)
        return self

    def _fit_blocks(self, table: BlockTable) -> Self:
        """Learn a table in blocks of rows."""
        self._check_blocks()
        self.n_features_in_ = table.shape[1]
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        self._check_units(table.shape[1])
        self.task_ = check_target(self, table.labels.values)
        self._learn_blocks(table)
        self.idle_ = self._idle_units(table)
        return self

    def _check_blocks(self) -> None:
        """Refuse blocks of rows where nothing can be learnt from them."""
        if not self.takes_blocks:
            refuse_blocks(type(self).__name__)

    def _learn_blocks(self, table: BlockTable) -> None:
        """Keep what scores need of a table in blocks of rows, in as few passes as can be."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from blocks of rows.")

    def _idle_units(self, table: BlockTable) -> Mask:
        """Units of a table in blocks that tell nothing beside the others."""
        return self.over_units(table.idle(), np.all)

    @abstractmethod
    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        """Keep what scores need of float64, column-major ``X`` and of ``y``.

        ``X`` is finite and dense, unless the facts of the class say that it takes more.
        """

    def grouped(self, columns: Sequence[ArrayLike] | None) -> Self:
        """Score these groups of columns as units from the next ``fit`` on.

        Parameters
        ----------
        columns : sequence of arrays of int, or None
            The columns of each unit, each column in one of them; None is each column by itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tamis.criteria import Scatter
        >>> X, y = load_iris(return_X_y=True)
        >>> pairs = Scatter("J3").grouped([[0, 1], [2, 3]]).fit(X, y)
        >>> pairs.value(np.array([1])) == Scatter("J3").fit(X, y).value(np.array([2, 3]))
        True
        """
        self._unit_columns = (
            None if columns is None else tuple(np.asarray(unit, dtype=np.intp) for unit in columns)
        )
        return self

    def _check_units(self, n_columns: int) -> None:
        """Refuse units that are no partition of the columns."""
        if self._unit_columns is None:
            return
        held = np.sort(np.concatenate([EMPTY, *self._unit_columns]))
        if not np.array_equal(held, np.arange(n_columns)) or not all(map(len, self._unit_columns)):
            raise InvalidParameter(
                f"{type(self).__name__} needs units that hold each of the {n_columns} columns "
                "once. Give a search feature_groups, which adds the columns that are alone."
            )

    @property
    def n_units_(self) -> int:
        """Number of units that can be scored."""
        return int(self.n_features_in_) if self._unit_columns is None else len(self._unit_columns)

    def columns(self, subset: Subset) -> Subset:
        """Columns of the units of a subset, sorted."""
        if self._unit_columns is None:
            return subset
        return np.sort(np.concatenate([EMPTY, *(self._unit_columns[unit] for unit in subset)]))

    def over_units(self, values: NDArray[Any], take: Callable[[NDArray[Any]], Any]) -> NDArray[Any]:
        """What a function makes of the values of each unit's columns."""
        if self._unit_columns is None:
            return values
        return np.array([take(values[columns]) for columns in self._unit_columns])

    def most_columns(self, subset: Subset, size: int) -> int:
        """The most columns that ``size`` units of a subset can have."""
        if self._unit_columns is None:
            return size
        sizes = sorted((len(self._unit_columns[unit]) for unit in subset), reverse=True)
        return sum(sizes[:size])

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the bytes held at once beside a table of this size, for two classes.

        They are right to within a factor of about three, and None if they are not known.
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

    def second_opinion(self, subset: Subset, units: Subset) -> Array:
        """How good the subset is once each of the units has moved, greater is better.

        Searches ask for it where scores are equal, and only if ``opinion`` says what it is. The
        units are all outside the subset, and enter one at a time, or all inside, and leave.
        """
        raise NotImplementedError(f"{type(self).__name__} has no second opinion.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        read_tags(tags, self)
        return tags


def read_tags(tags: Tags, criterion: Any) -> None:
    """Write what a criterion can read into the tags of what fits it."""
    tags.input_tags.allow_nan = bool(getattr(criterion, "takes_missing", False))
    tags.input_tags.sparse = bool(getattr(criterion, "takes_sparse", False))
    several = getattr(criterion, "takes_several_targets", False)
    tags.target_tags.multi_output = bool(several or not tags.target_tags.required)


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


class SubsetCriterion(Criterion):
    """Criterion that values any subset, the empty one included.

    It counts as a :class:`ForwardCriterion` and a :class:`BackwardCriterion`. ``gain``, ``loss``,
    ``values`` and ``bounds`` follow; a subclass may override them for speed, and the laws hold each
    shortcut to its definition here.
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
        """What adding each candidate to the subset brings."""
        base, *grown = self.values([subset, *(with_unit(subset, j) for j in candidates)])
        return difference(np.array(grown), base)

    def loss(self, subset: Subset) -> Array:
        """Quality lost by removing each member of the subset (not a loss function)."""
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


# by registration and not by inheritance, which keeps the chains of classes short
ForwardCriterion.register(SubsetCriterion)
BackwardCriterion.register(SubsetCriterion)


def with_unit(subset: Subset, unit: int) -> Subset:
    """The subset and one more unit, sorted.

    Parameters
    ----------
    subset : array of int
        Sorted.
    unit : int
        Not in it.
    """
    return np.insert(subset, np.searchsorted(subset, unit), unit)


def difference(values: Array, base: float) -> Array:
    """values - base, where infinity less infinity is nothing.

    Parameters
    ----------
    values : array of float
    base : float
    """
    with np.errstate(invalid="ignore"):
        return np.where(values == base, 0.0, values - base)


def check_target(criterion: Criterion, y: NDArray[Any] | None) -> str:
    """The task as the criterion will read it: "none", "classification" or "regression".

    Parameters
    ----------
    criterion : Criterion
        Who reads it.
    y : array or None
    """
    if y is None:
        return "none"
    name = type(criterion).__name__
    if y.dtype.names is not None or criterion.targets == {SURVIVAL}:
        return _check_censored(criterion, y)
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


def _check_censored(criterion: Criterion, y: NDArray[Any]) -> str:
    """Refuse a censored target that cannot be used, and another where one is needed."""
    name = type(criterion).__name__
    if SURVIVAL not in criterion.targets and criterion.needs_target:
        raise InvalidTarget(
            f"{name} needs classes or numbers, but y is a censored target (event and time). Use "
            "CoxScore, Variance, or CrossValidated with an estimator of scikit-survival."
        )
    if y.dtype.names is None:
        censored_columns(name, y)
    return SURVIVAL


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
