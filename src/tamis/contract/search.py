"""Base class of searches, which explore subsets and score them with a criterion."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from math import isnan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from tamis._arrays import EMPTY, Array, Subset, improves, snapped, standardised
from tamis._format import format_count
from tamis._memory import check_cost
from tamis._namespace import device_asked
from tamis._sparse import is_sparse
from tamis.blocks.table import BlockTable
from tamis.contract.choice import SizeLike, gains_until
from tamis.contract.composition import FITTING
from tamis.contract.costs import FeatureCosts, Limit
from tamis.contract.criterion import (
    BackwardCriterion,
    Criterion,
    ForwardCriterion,
    SubsetCriterion,
    check_target,
    read_tags,
)
from tamis.contract.fit_warnings import FitWarning
from tamis.contract.record import Record
from tamis.contract.selector import Selection
from tamis.contract.steps import NOTHING
from tamis.contract.units import Fixed, Groups
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidScore,
    NothingGained,
)

#: Texts for messages about each kind of criterion: the score that it provides, what it can do, and
#: the name of a search that can use it.
CAPABILITIES = {
    ForwardCriterion: ("the gain of adding a feature", "only scores additions", "Forward"),
    BackwardCriterion: (
        "the loss of removing a feature",
        "only scores removals",
        "RecursiveElimination",
    ),
    SubsetCriterion: ("the value of a subset", "scores any subset", "FloatingForward"),
}

#: Tie-breaking scores that differ by less than this are tied. Such a score is a mean of losses
#: between 0 and 2, and its rounding error is below 1e-9.
SAME_OPINION = 1e-9


class Counted:
    """A fitted criterion that counts its scores and refuses NaN.

    Parameters
    ----------
    criterion : Criterion
        The fitted criterion.
    n_evaluations : int, default=0
        Number of scores that were computed before a resume.
    fixed : array of int
        Units that every subset must contain.
    """

    #: Always empty, because only a composition has parts.
    parts: tuple[Record, ...] = ()
    #: The price limit under which units are added and removed, or None.
    limit: Limit | None = None

    def __init__(self, criterion: Criterion, n_evaluations: int = 0, fixed: Subset = EMPTY):
        self.criterion: Any = criterion
        self.n_evaluations = n_evaluations
        self.fixed = fixed
        self.has_value = isinstance(criterion, SubsetCriterion)
        self.has_opinion = bool(getattr(criterion, "opinion", ""))
        self._opinions: dict[bytes, float] = {}
        # a criterion that overrides fit may not set idle_
        self.any_idle = bool(np.any(getattr(criterion, "idle_", False)))

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """Return the gain of adding each candidate to the subset."""
        return self._scored(self.criterion.gain(subset, candidates), candidates)

    def loss(self, subset: Subset) -> Array:
        """Return the loss of removing each member of the subset."""
        return self._scored(self.criterion.loss(subset), subset)

    def value(self, subset: Subset) -> float:
        """Return the value of a subset, or NaN if the criterion only ranks."""
        return float(self.values([subset])[0]) if self.has_value else float("nan")

    def values(self, subsets: list[Subset]) -> Array:
        """Return the values of several subsets."""
        return self._scored(self.criterion.values(subsets), subsets)

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        """Return, for each subset, an upper bound for the value of any ``size`` of its units."""
        return self._scored(self.criterion.bounds(subsets, size), subsets)

    def start(self, subset: Subset) -> float:
        """Return the value of the subset that a forward search starts from.

        It is not counted as an evaluation.
        """
        return float(self.criterion.value(subset)) if self.has_value else float("nan")

    def noise(self, value: float) -> float:
        """Return the rounding error of a difference between two values of this magnitude."""
        if not self.has_value or self.criterion.additive or not np.isfinite(value):
            return 0.0
        return 1e-13 * abs(value)

    def affordable(self, subset: Subset, candidates: Subset) -> Subset:
        """Return the candidates that can be added to the subset within the price limit."""
        return candidates if self.limit is None else self.limit.affordable(subset, candidates)

    def merits(self, scores: Array, subset: Subset, candidates: Subset | None = None) -> Array:
        """Return the numbers by which candidates, or the members of the subset, are compared.

        They are the scores, or scores per price, with minus infinity for constant and duplicate
        units.
        """
        if self.limit is not None:
            scores = self.limit.rates(scores, subset, candidates)
        if not self.any_idle:
            return scores
        idle = self.criterion.idle_[subset if candidates is None else candidates]
        return np.where(idle, -np.inf, scores) if idle.any() and not idle.all() else scores

    @property
    def idle(self) -> Subset:
        """Units whose columns are constant or duplicates."""
        return np.flatnonzero(self.criterion.idle_) if self.any_idle else EMPTY

    def errors(self, subset: Subset) -> Array:
        """Return the standard errors of the last scores. The array is empty if they are unknown."""
        errors = self.criterion.errors(subset)
        return NOTHING if errors is None else errors

    def winner(self, subset: Subset, units: Subset, equal: Subset) -> int:
        """Return the position of the unit to move, one of the tied positions ``equal``.

        Ties go to the best tie-breaking score, then to the first position.
        """
        if not self.has_opinion or len(equal) == 1:
            return int(equal[0])
        return int(equal[self.opinions(subset, units[equal]).argmax()])

    def opinions(self, subset: Subset, units: Subset) -> Array:
        """Return the scores that break ties. Greater is better.

        They are not counted as evaluations.
        """
        if not self.has_opinion or len(units) < 2:
            return np.zeros(len(units))
        return snapped(self.criterion.second_opinion(subset, units), SAME_OPINION)

    def beats(self, subset: Subset, value: float, other: Subset, known: float) -> bool:
        """Whether a subset is better than another.

        Ties go to the better tie-breaking score, then to the lexicographically first subset.
        """
        if improves(value, known) or improves(known, value) or not len(other):
            return improves(value, known)
        if np.array_equal(subset, other):
            return False
        lead = self._opinion_of(subset) - self._opinion_of(other)
        return lead > 0 if abs(lead) > SAME_OPINION else tuple(subset) < tuple(other)

    def _opinion_of(self, subset: Subset) -> float:
        """Return the tie-breaking score of a subset, or 0 if there is none. It is cached."""
        if not self.has_opinion or not len(subset):
            return 0.0
        key = subset.tobytes()
        if key not in self._opinions:
            found = self.criterion.second_opinion(subset[:-1], subset[-1:])
            self._opinions[key] = float(found[0])
        return self._opinions[key]

    def _scored(self, scores: Array, things: Any) -> Array:
        scores = np.asarray(scores, dtype=float)
        self.n_evaluations += len(things)
        if len(scores) and isnan(scores[scores.argmin()]):  # argmin returns the position of a NaN
            index = int(np.flatnonzero(np.isnan(scores))[0])
            raise InvalidScore(
                f"{type(self.criterion).__name__} returned NaN for feature(s) {things[index]}. A "
                "search needs numbers: look for a failing estimator or a degenerate column."
            )
        return scores


@dataclass(eq=False, repr=False)
class Search(MetaEstimatorMixin, Selection):
    """Selection that explores subsets and scores them with a criterion.

    A subclass implements :meth:`_steps`, which gets a fitted :class:`Counted` criterion.

    Parameters
    ----------
    criterion : Criterion
        The criterion that scores columns or subsets. A clone of it is fitted.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units to select: a count, a fraction, ``"best"`` for the subset with the greatest
        value, or a choice such as ``Threshold(0.1)``.
    standardize : bool, default=True
        Whether columns are scaled to mean 0 and standard deviation 1 for the criterion. ``y`` is
        not scaled, and ``transform`` returns the original columns. Row weights do not affect the
        mean and the deviation. NaN stays NaN, and sparse columns are not centred. Criteria that
        depend on the scale, such as ``Variance``, get the original columns.
    feature_groups : mapping, sequence or None, default=None
        Columns that are selected together, as one unit: ``{"name": ["a", "b"]}`` with columns by
        name or index, or one label per column. A column in no group, or with the label None, is a
        unit of its own.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that every subset contains. They are included in the number of
        units to select.
    feature_costs : FeatureCosts or None, default=None
        Prices of the columns. ``cost_`` is the price of the selection. Prices change the selection
        only if ``n_features_to_select`` is :class:`tamis.choice.CostLimit`.

    Attributes
    ----------
    gains_until_ : int or None
        Size of a smaller subset that is at least as good as the selected one. It is the subset with
        the greatest value up to the selected step, and ties go to the smallest size. None if every
        smaller subset up to that step is worse, or if values are unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from tamis.contract import Search, Step, SubsetCriterion
    >>> from tamis.criteria import Scatter
    >>> class InOrder(Search):
    ...     needs = (SubsetCriterion,)
    ...     def _steps(self, criterion, n_units, size, done):
    ...         for n in range(len(done) + 1, n_units + 1):
    ...             yield Step(np.arange(n), criterion.value(np.arange(n)))
    >>> search = InOrder(Scatter("J3"), n_features_to_select=2).fit(*load_iris(return_X_y=True))
    >>> search.trace_.values.round(2)
    array([ 2.62,  6.33, 28.5 , 36.48])
    """

    #: The kinds of criterion that this search can use.
    needs: ClassVar[tuple[type[Criterion], ...]]

    criterion: Criterion
    _: KW_ONLY
    n_features_to_select: SizeLike = 0.5
    standardize: bool = True
    feature_groups: Groups = None
    fixed_features: Fixed = None
    feature_costs: FeatureCosts | None = None

    def _check(self) -> None:
        """Refuse a search, criterion and choice that do not fit together."""
        check_capability(self, self.criterion)
        self.criterion.check()
        self._choice().check(self, self.criterion)

    def _check_target(self, y: NDArray[Any] | None) -> None:
        check_target(self.criterion, y)

    def _check_blocks(self) -> None:
        self.criterion._check_blocks()
        choice = self._choice()
        if not choice.takes_blocks:
            raise InvalidParameter(
                f"{type(choice).__name__} trains a model, which needs the whole table in memory, "
                "not row blocks. Ask for a number of features, or write "
                "BestPrefix(LinearDiscriminantAnalysis()) for a classification."
            )

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Counted:
        on_device = device_asked() is not None and self.criterion.runs_on_device
        # memory is estimated for dense tables on the CPU only
        if not (on_device or is_sparse(X) or isinstance(X, BlockTable)):
            name = f"{type(self).__name__}({type(self.criterion).__name__})"
            check_cost(name, self.criterion.cost, *X.shape)
        grouping = done.grouping
        self.criterion.grouped(grouping.members)
        scaled = self.standardize and not self.criterion.reads_scale
        if isinstance(X, BlockTable):
            table: Any = X.scaled(type(self.criterion).__name__, scaled)
            self.criterion.fit(table)
        else:
            self.criterion.fit(standardised(X) if scaled else X, y, **self._routed(params))
        for chosen in done.trace.params.values():
            self.criterion.use(chosen)
        return Counted(self.criterion, done.trace.n_evaluations, grouping.fixed_units)

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        self.gains_until_: int | None = gains_until(record.trace, record.chosen)

    def _warnings(self, criterion: Any) -> Iterator[FitWarning]:
        yield from super()._warnings(criterion)
        if self.gains_until_ is not None:
            yield f"{type(self).__name__}: {self._gained()}", NothingGained

    def _reasons(self) -> list[str]:
        gained = [] if self.gains_until_ is None else [self._gained()]
        return super()._reasons() + gained

    def _gained(self) -> str:
        """Return a sentence stating that a subset of ``gains_until_`` units is at least as good."""
        sizes, values = self.trace_.sizes, self.trace_.values
        least, chosen = self.gains_until_, self.choice_.step
        there = values[: chosen + 1][sizes[: chosen + 1] == least].max()
        word = "column" if self.units_.plain else "unit"
        return (
            f"more than {format_count(least, word)} add no value: the value is {there:.4g} with "
            f"{least}, and {values[chosen]:.4g} with the selected {sizes[chosen]}. Ask for fewer, "
            "or see trace_.values."
        )

    @property
    def takes_categories(self) -> bool:
        """Whether the criterion accepts columns of category codes."""
        return bool(getattr(self.criterion, "takes_categories", False))

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the criterion and the choice accept row blocks."""
        return bool(getattr(self.criterion, "takes_blocks", False) and self._choice().takes_blocks)

    @property
    def _takes_metadata(self) -> bool:
        return bool(self.criterion.takes_metadata)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return params
        return dict(process_routing(self, "fit", **params).criterion.fit) if params else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Route metadata of ``fit`` to the criterion's ``fit``."""
        return MetadataRouter(owner=self).add(criterion=self.criterion, method_mapping=FITTING)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(getattr(self.criterion, "needs_target", True))
        read_tags(tags, self.criterion)
        return tags


def check_capability(search: Search, criterion: Any) -> None:
    """Refuse a criterion that the search cannot use, and suggest another."""
    name = type(search).__name__
    if isinstance(criterion, search.needs):
        return
    wanted = " or ".join(CAPABILITIES[need][0] for need in search.needs)
    if not isinstance(criterion, Criterion):
        raise IncompatibleCriterion(
            f"{name} needs a criterion with {wanted}, not {criterion!r}. Wrap an estimator "
            f"as {name}(CrossValidated(estimator)) or a function of (X, y) as "
            f"{name}(Scored(function))."
        )
    scored_by = type(criterion).__name__
    _, can, instead = next(CAPABILITIES[c] for c in CAPABILITIES if isinstance(criterion, c))
    raise IncompatibleCriterion(
        f"{name} needs {wanted}; {scored_by} {can}. Use {instead}({scored_by}(...)), or "
        f"{name}(CrossValidated(estimator))."
    )
