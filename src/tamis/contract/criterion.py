"""Base classes of criteria.

There are three kinds of criteria:

* a :class:`ForwardCriterion` scores the *addition* of each candidate (mRMR, CMIM, ...);
* a :class:`BackwardCriterion` scores the *removal* of each member, and trains only once for all
  members (sensitivities, weights, bounds);
* a :class:`SubsetCriterion` scores any *subset* (scatter, divergence, joint information,
  cross-validation). Gains and losses are differences between these scores.

Subsets are sorted indices of *units*. A unit is a column, or a group of columns that is selected
as one. Unit j is column j unless :meth:`Criterion.grouped` defines groups. A criterion that reads
its data through :meth:`Criterion.columns` can score groups.

A score depends on the subset alone. Its random generator is derived from the seed and the subset
(see :func:`tamis._seeds.stream`). So the result is the same after a resume, for any ``n_jobs``, and
in any order of calls. A criterion may cache and update results, but a cache never changes a score.
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
    """Base class of criteria, which score features. A greater score is better.

    A subclass implements :meth:`_learn` and the scoring methods of its kind (gain, loss or value).
    The class attributes below declare which data it accepts. They are checked before any work
    starts. A criterion that wraps an estimator can define them as properties.
    """

    #: Whether ``fit`` needs ``y``.
    needs_target: ClassVar[bool] = True
    #: Kinds of target that the criterion accepts: "classification", "regression", "survival".
    targets: ClassVar[frozenset[str]] = TASKS
    #: Whether ``fit`` takes per-row metadata such as sample weights.
    takes_metadata: ClassVar[bool] = False
    #: Whether the table may contain NaN.
    takes_missing: ClassVar[bool] = False
    #: Whether ``categories`` may name columns of category codes.
    takes_categories: ClassVar[bool] = False
    #: Whether the table may be sparse (CSR, CSC). It is never converted to a dense one.
    takes_sparse: ClassVar[bool] = False
    #: Whether the criterion can learn from row blocks, without the whole table in memory.
    takes_blocks: ClassVar[bool] = False
    #: Whether ``y`` may have several columns, with a target in each.
    takes_several_targets: ClassVar[bool] = False
    #: Whether scores can be computed on a GPU or other device.
    runs_on_device: ClassVar[bool] = False
    #: Whether scores depend on the scale of the columns. A search then does not standardise them.
    reads_scale: ClassVar[bool] = False
    #: Whether ``loss`` returns the decrease of a score. A negative loss is then an improvement.
    loses_score: ClassVar[bool] = False
    #: Name of the score that breaks ties, such as "squared loss on the same folds". Empty
    #: if there is none. See :meth:`second_opinion`.
    opinion: ClassVar[str] = ""
    #: Mask of the units whose columns are all constant or duplicates of earlier columns, set by
    #: ``fit``. Searches add these units last and drop them first.
    idle_: Mask
    #: Columns of each unit, or None if every unit is a column.
    _unit_columns: tuple[Subset, ...] | None = None

    def check(self) -> None:
        """Raise an error if the parameters cannot work, before any data are read.

        ``_constraints`` declares the allowed values of each parameter.
        """
        check_parameters(self)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Self:
        """Learn from the data.

        Parameters
        ----------
        X : array, frame or BlockTable
            The table. A :class:`BlockTable` contains the target, and needs ``takes_blocks``.
        y : array or None, default=None
            The target.
        **params
            Per-row metadata such as ``sample_weight``.
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
                    f"{type(self).__name__} cannot use {names}: it does not train an estimator. "
                    + rows_advice(names, "a criterion such as CrossValidated or Importances")
                )
            self.idle_ = self.over_units(idle_columns(X), np.all)
            self._learn(X, y, **params)
        return self

    def _fit_blocks(self, table: BlockTable) -> Self:
        """Learn from row blocks."""
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
        """Refuse row blocks if the criterion cannot learn from them."""
        if not self.takes_blocks:
            refuse_blocks(type(self).__name__)

    def _learn_blocks(self, table: BlockTable) -> None:
        """Learn everything that scores need from row blocks, in as few passes as possible."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from row blocks.")

    def _idle_units(self, table: BlockTable) -> Mask:
        """Return a mask of the units of a table in row blocks that are constant or duplicates."""
        return self.over_units(table.idle(), np.all)

    @abstractmethod
    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        """Learn from ``X`` and ``y`` everything that scores need, and store it.

        ``X`` is float64, column-major, finite and dense, unless the class attributes allow other
        tables.
        """

    def grouped(self, columns: Sequence[ArrayLike] | None) -> Self:
        """Define groups of columns. From the next ``fit`` on, each group is scored as a unit.

        Parameters
        ----------
        columns : sequence of arrays of int, or None
            The columns of each unit. Every column belongs to exactly one unit. None makes each
            column a unit.

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
        """Refuse units that do not contain every column exactly once."""
        if self._unit_columns is None:
            return
        held = np.sort(np.concatenate([EMPTY, *self._unit_columns]))
        if not np.array_equal(held, np.arange(n_columns)) or not all(map(len, self._unit_columns)):
            raise InvalidParameter(
                f"{type(self).__name__} needs units that hold each of the {n_columns} columns "
                "once. Pass feature_groups to a search, which adds the columns in no group."
            )

    @property
    def n_units_(self) -> int:
        """Number of units that can be scored."""
        return int(self.n_features_in_) if self._unit_columns is None else len(self._unit_columns)

    def columns(self, subset: Subset) -> Subset:
        """Return the columns of a subset of units, sorted."""
        if self._unit_columns is None:
            return subset
        return np.sort(np.concatenate([EMPTY, *(self._unit_columns[unit] for unit in subset)]))

    def over_units(self, values: NDArray[Any], take: Callable[[NDArray[Any]], Any]) -> NDArray[Any]:
        """Apply a function to the values of each unit's columns, and return a result per unit."""
        if self._unit_columns is None:
            return values
        return np.array([take(values[columns]) for columns in self._unit_columns])

    def most_columns(self, subset: Subset, size: int) -> int:
        """Return the largest total number of columns that ``size`` units of a subset can have."""
        if self._unit_columns is None:
            return size
        sizes = sorted((len(self._unit_columns[unit]) for unit in subset), reverse=True)
        return sum(sizes[:size])

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the criterion needs in addition to the table.

        The estimate assumes two classes and is right within a factor of about three. It is None if
        the memory is unknown.
        """
        return None

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Tune the hyper-parameters for the subset, use them from now on, and return them."""
        return {}

    def use(self, params: dict[str, Any]) -> None:
        """Use the hyper-parameters that an earlier call of :meth:`tune` returned."""

    def errors(self, subset: Subset) -> Array | None:
        """Return the standard errors of the last scores for the subset, or None if unknown."""
        return None

    def second_opinion(self, subset: Subset, units: Subset) -> Array:
        """Return a second score of the subset after the move of each unit. Greater is better.

        Searches use it to break ties if ``opinion`` is not empty. If the units are outside the
        subset, each is added on its own. If they are in the subset, each is removed on its own.
        """
        raise NotImplementedError(f"{type(self).__name__} has no second score to break ties.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_target
        read_tags(tags, self)
        return tags


def read_tags(tags: Tags, criterion: Any) -> None:
    """Set the scikit-learn tags of an estimator to the inputs that its criterion accepts."""
    tags.input_tags.allow_nan = bool(getattr(criterion, "takes_missing", False))
    tags.input_tags.sparse = bool(getattr(criterion, "takes_sparse", False))
    several = getattr(criterion, "takes_several_targets", False)
    tags.target_tags.multi_output = bool(several or not tags.target_tags.required)


class ForwardCriterion(Criterion):
    """Criterion that scores the addition of units to a subset.

    Examples
    --------
    >>> import numpy as np
    >>> from tamis.contract import ForwardCriterion
    >>> class Covariance(ForwardCriterion):
    ...     def _learn(self, X, y):
    ...         self.scores_ = abs((X - X.mean(axis=0)).T @ (y - y.mean())) / len(y)
    ...     def gain(self, subset, candidates):
    ...         return self.scores_[candidates]
    >>> criterion = Covariance().fit([[0, 1], [1, 1], [2, 0]], [0.5, 1.5, 2.5])
    >>> criterion.gain(np.array([], dtype=int), np.array([0, 1])).round(2)
    array([0.67, 0.33])
    """

    @abstractmethod
    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """Return the gain of adding each candidate to the subset."""


class BackwardCriterion(Criterion):
    """Criterion that scores the removal of units from a subset.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tamis.contract import BackwardCriterion
    >>> class Weights(BackwardCriterion):
    ...     def _learn(self, X, y):
    ...         self.X_, self.y_ = X, y
    ...     def loss(self, subset):
    ...         return abs(LinearRegression().fit(self.X_[:, subset], self.y_).coef_)
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> Weights().fit(X, X @ [0.5, 3.0]).loss(np.array([0, 1])).round(2)
    array([0.5, 3. ])
    """

    @abstractmethod
    def loss(self, subset: Subset) -> Array:
        """Return, for each member of the subset, how much quality is lost when it is removed."""


class SubsetCriterion(Criterion):
    """Criterion that computes the value of any subset, including the empty one.

    It is also a :class:`ForwardCriterion` and a :class:`BackwardCriterion`. ``gain``, ``loss``,
    ``values`` and ``bounds`` are computed from ``value``. A subclass may override them for speed;
    :func:`tamis.testing.check_criterion` compares them with the definitions here.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tamis.contract import SubsetCriterion
    >>> class RSquared(SubsetCriterion):
    ...     def _learn(self, X, y):
    ...         self.X_, self.y_ = X, y
    ...     def value(self, subset):
    ...         if not len(subset):
    ...             return 0.0
    ...         X = self.X_[:, subset]
    ...         return LinearRegression().fit(X, self.y_).score(X, self.y_)
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    >>> RSquared().fit(X, X @ [0.5, 3.0]).loss(np.array([0, 1])).round(2)
    array([0.04, 0.43])
    """

    #: Whether the value of a subset is the sum of the values of its members.
    additive: ClassVar[bool] = False
    #: Whether scores are -log p-values, which the choice ``FalseDiscovery`` needs.
    scores_are_log_p: ClassVar[bool] = False

    @property
    def monotone(self) -> bool:
        """Whether adding units never lowers the value."""
        return False

    @abstractmethod
    def value(self, subset: Subset) -> float:
        """Return the quality of the subset."""

    def values(self, subsets: Iterable[Subset]) -> Array:
        """Return the quality of several subsets. Override it to cache or to parallelise."""
        return np.array([self.value(subset) for subset in subsets])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """Return the gain of adding each candidate to the subset."""
        base, *grown = self.values([subset, *(with_unit(subset, j) for j in candidates)])
        return difference(np.array(grown), base)

    def loss(self, subset: Subset) -> Array:
        """Return, for each member of the subset, how much quality is lost when it is removed."""
        base, *shrunk = self.values([subset, *(subset[subset != j] for j in subset)])
        return -difference(np.array(shrunk), base)

    def bound(self, subset: Subset, size: int) -> float:
        """Return an upper bound for the value of any ``size`` units out of ``subset``.

        The default, the value of ``subset`` itself, is valid for a monotone criterion.
        """
        return self.value(subset)

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        """Return the upper bound (see :meth:`bound`) of each of several subsets."""
        return np.array([self.bound(subset, size) for subset in subsets])


# registered as virtual subclasses, which keeps the class hierarchy shallow
ForwardCriterion.register(SubsetCriterion)
BackwardCriterion.register(SubsetCriterion)


def with_unit(subset: Subset, unit: int) -> Subset:
    """Return the subset with one more unit, sorted.

    Parameters
    ----------
    subset : array of int
        Sorted unit indices.
    unit : int
        A unit that is not in the subset.
    """
    at = subset.searchsorted(unit)
    return np.concatenate([subset[:at], [unit], subset[at:]], dtype=np.intp)  # faster than insert


def difference(values: Array, base: float) -> Array:
    """Return values - base, with 0 for the difference between equal infinities.

    Parameters
    ----------
    values : array of float
        The values.
    base : float
        The number to subtract.
    """
    with np.errstate(invalid="ignore"):
        return np.where(values == base, 0.0, values - base)


def rows_advice(names: str, users: str) -> str:
    """Return the advice for a selection that cannot use the given values of rows.

    ``users`` describes selections that can use weights and groups.
    """
    if names == "environments":
        users = "InvariantSelection(...) or HonestSize(...) around the search"
    return f"Leave {names} out, or use {users}."


def check_target(criterion: Criterion, y: NDArray[Any] | None) -> str:
    """Check the target, and return "none", "classification", "regression" or "survival".

    Parameters
    ----------
    criterion : Criterion
        The criterion whose ``targets`` and ``task`` are compared with the target.
    y : array or None
        The target.
    """
    if y is None:
        return "none"
    name = type(criterion).__name__
    if y.dtype.names is not None or criterion.targets == {SURVIVAL}:
        return _check_censored(criterion, y)
    try:
        detected = target_kind(y)
        if y.dtype.kind == "O":
            np.unique(y)
    except TypeError as error:  # labels of different types cannot be sorted
        raise InvalidTarget(
            f"{name} needs labels of one type, but y mixes several ({error}). Convert it, for "
            "example with y.astype(str)."
        ) from error
    asked = getattr(criterion, "task", "auto")
    if asked not in {"auto", *TASKS}:
        raise InvalidParameter(
            f"{name} needs task='auto', 'classification' or 'regression', not {asked!r}."
        )
    kind = detected if asked == "auto" else asked
    if len(criterion.targets) == 1:
        (kind,) = criterion.targets
        if asked not in {"auto", kind}:
            raise InvalidParameter(
                f"{name} supports only {kind}. Write task={kind!r}, or leave task out."
            )
    if kind == "classification" and criterion.needs_target:
        _check_classes(criterion, y, detected)
    if kind == "regression" and not np.issubdtype(y.dtype, np.number):
        raise InvalidTarget(
            f"{name} needs a numeric target, but y holds labels such as {str(y[0])!r}. Use a "
            "criterion for classes, or convert y with y.astype(float)."
        )
    return kind


def _check_censored(criterion: Criterion, y: NDArray[Any]) -> str:
    """Refuse a censored target that the criterion cannot use, or an invalid censored target."""
    name = type(criterion).__name__
    if SURVIVAL not in criterion.targets and criterion.needs_target:
        raise InvalidTarget(
            f"{name} needs classes or numbers, but y is a censored target (event and time). Use "
            "CoxScore, Variance, or CrossValidated with an estimator of scikit-survival."
        )
    if y.dtype.names is None:
        censored_columns(name, y)
    return SURVIVAL


def _check_classes(criterion: Criterion, y: NDArray[Any], detected: str) -> None:
    """Refuse a target that has fewer than two classes or looks like a regression target."""
    name, asked = type(criterion).__name__, getattr(criterion, "task", None)
    if detected == "regression":
        if np.issubdtype(y.dtype, np.floating) and not (y == np.rint(y)).all():
            raise InvalidTarget(
                f"{name} needs classes, but y holds real numbers such as {y[0]}. Use a criterion "
                "for regression (Correlation, MutualInformation), or discretise y."
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
            f"{str(labels[0])!r}. Check the target column, or the split it came from."
        )
