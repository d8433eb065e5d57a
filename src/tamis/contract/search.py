"""Selections by a search: a criterion that scores, and a walk through the subsets."""

from collections.abc import Iterator
from math import isnan
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from tamis._arrays import EMPTY, Array, Subset, improves, snapped, standardised
from tamis._memory import check_cost
from tamis._namespace import device_asked
from tamis._sparse import is_sparse
from tamis.blocks.table import BlockTable
from tamis.contract.choice import SizeLike, counted, gains_until
from tamis.contract.composition import FITTING
from tamis.contract.criterion import (
    BackwardCriterion,
    Criterion,
    ForwardCriterion,
    SubsetCriterion,
    check_target,
    read_tags,
)
from tamis.contract.record import Record
from tamis.contract.selector import Doubt, Selection
from tamis.contract.steps import NOTHING
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidScore,
    NothingGained,
)

#: What each capability lets a criterion do, and who has it, for messages.
SPOKEN = {
    ForwardCriterion: ("the gain of adding a feature", "only scores additions", "Forward"),
    BackwardCriterion: (
        "the loss of removing a feature",
        "only scores removals",
        "RecursiveElimination",
    ),
    SubsetCriterion: ("the value of a subset", "values any subset", "FloatingForward"),
}

#: Second opinions that differ by less are equal: they are means of losses between 0 and 2, which
#: different ways to compute them leave nine digits.
SAME_OPINION = 1e-9


class Counted:
    """A fitted criterion that counts the scores asked of it, and refuses NaN.

    Parameters
    ----------
    criterion : Criterion
        Fitted.
    n_evaluations : int, default=0
        Scores asked of it before.
    fixed : array of int
        Units that every subset must hold.
    """

    #: It is no composition.
    parts: tuple[Record, ...] = ()

    def __init__(self, criterion: Criterion, n_evaluations: int = 0, fixed: Subset = EMPTY):
        self.criterion: Any = criterion
        self.n_evaluations = n_evaluations
        #: Units that every subset must hold.
        self.fixed = fixed
        self.has_value = isinstance(criterion, SubsetCriterion)
        self.has_opinion = bool(getattr(criterion, "opinion", ""))
        self._opinions: dict[bytes, float] = {}
        # a criterion with a fit of its own may know nothing of idle units
        self.any_idle = bool(np.any(getattr(criterion, "idle_", False)))

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        """What adding each candidate brings."""
        return self._scored(self.criterion.gain(subset, candidates), candidates)

    def loss(self, subset: Subset) -> Array:
        """What removing each member costs."""
        return self._scored(self.criterion.loss(subset), subset)

    def value(self, subset: Subset) -> float:
        """Value of a subset, nan where the criterion only ranks."""
        return float(self.values([subset])[0]) if self.has_value else float("nan")

    def values(self, subsets: list[Subset]) -> Array:
        """Values of many subsets."""
        return self._scored(self.criterion.values(subsets), subsets)

    def bounds(self, subsets: list[Subset], size: int) -> Array:
        """The most that a subset of ``size`` inside each subset can be worth."""
        return self._scored(self.criterion.bounds(subsets, size), subsets)

    def start(self, subset: Subset) -> float:
        """Value from which a forward walk starts: known beforehand, so not counted."""
        return float(self.criterion.value(subset)) if self.has_value else float("nan")

    def noise(self, value: float) -> float:
        """What rounding leaves in a score that is a difference of values of this size."""
        if not self.has_value or self.criterion.additive or not np.isfinite(value):
            return 0.0
        return 1e-13 * abs(value)

    def shunning(self, scores: Array, units: Subset) -> Array:
        """Scores to choose by: units that can tell nothing come last, and leave first."""
        if not self.any_idle:
            return scores
        idle = self.criterion.idle_[units]
        return np.where(idle, -np.inf, scores) if idle.any() and not idle.all() else scores

    @property
    def idle(self) -> Subset:
        """Units that can tell nothing beside the others."""
        return np.flatnonzero(self.criterion.idle_) if self.any_idle else EMPTY

    def errors(self, subset: Subset) -> Array:
        """Standard errors of the last scores, empty where they are not known."""
        errors = self.criterion.errors(subset)
        return NOTHING if errors is None else errors

    def winner(self, subset: Subset, units: Subset, merits: Array) -> int:
        """Position of the unit to move: of equals that of the best opinion, then the first."""
        best = int(np.argmax(merits))
        if not self.has_opinion:
            return best
        equal = np.flatnonzero(merits == merits[best])
        return int(equal[np.argmax(self.opinions(subset, units[equal]))])

    def opinions(self, subset: Subset, units: Subset) -> Array:
        """What orders units of equal scores, greater is better; 0 for all where nothing does.

        Second opinions are not counted.
        """
        if not self.has_opinion or len(units) < 2:
            return np.zeros(len(units))
        return snapped(self.criterion.second_opinion(subset, units), SAME_OPINION)

    def beats(self, subset: Subset, value: float, other: Subset, known: float) -> bool:
        """Whether a subset is the one to keep of two.

        Of equal values it is the one of the better opinion, then the lexicographically first.
        """
        if improves(value, known) or improves(known, value) or not len(other):
            return improves(value, known)
        if np.array_equal(subset, other):
            return False
        gap = self._opinion_of(subset) - self._opinion_of(other)
        return gap > 0 if abs(gap) > SAME_OPINION else tuple(subset) < tuple(other)

    def _opinion_of(self, subset: Subset) -> float:
        """The second opinion of a whole subset, asked once; 0 where there is none."""
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
        if len(scores) and isnan(scores[scores.argmin()]):  # the first NaN where any is
            index = int(np.flatnonzero(np.isnan(scores))[0])
            raise InvalidScore(
                f"{type(self.criterion).__name__} answered NaN for feature(s) {things[index]}. No "
                "NaN may decide a search: look for a failing estimator or a degenerate column."
            )
        return scores


class Search(MetaEstimatorMixin, Selection):
    """Selection that explores subsets by the scores of a criterion.

    A subclass stores its parameters and implements :meth:`_steps`, whose ``criterion`` is a
    :class:`Counted` one: fitted, counting, and refusing NaN.

    Parameters
    ----------
    criterion : Criterion
        It is cloned and fitted; the one given is never changed.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        How many columns are kept: a number, a fraction of all, the subset of greatest value, or a
        choice such as ``Threshold(0.1)``.
    standardize : bool, default=True
        Whether the criterion sees columns of mean 0 and standard deviation 1; ``y`` is never
        scaled, and ``transform`` always gives the original columns. Weights of rows do not enter
        the mean and the deviation: standardise yourself if a row of weight 2 is to count as two
        rows. NaN stays what it is, sparse
        columns are not centred, and a criterion that is about the scale, ``Variance``, sees the
        columns as they are.
    feature_groups : mapping, sequence or None, default=None
        Columns that are taken or left as one unit: ``{"name": ["a", "b"]}`` with columns by name
        or index, or one label per column. A column in no group, or with the label None, is a unit
        of its own. Sizes count units.
    fixed_features : str, int, sequence of them, or None, default=None
        Columns, or names of groups, that every subset holds; they count among those kept.

    Attributes
    ----------
    gains_until_ : int or None
        The number of units from which on the walk gained nothing, by its own values; None where
        the subset kept is worth more than every smaller one before it, or values are not known.
    """

    gains_until_: int | None

    #: The weakest capability this search can walk with; of several, any one.
    needs: ClassVar[tuple[type[Criterion], ...]]

    def __init__(
        self,
        criterion: Any,
        *,
        n_features_to_select: SizeLike = 0.5,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features

    def _check(self) -> None:
        """Whether search, criterion and choice fit together, before any work."""
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
                f"{type(choice).__name__} trains a model, which needs the whole table at once, not "
                "blocks of rows. Ask for a number of features, or write "
                "BestPrefix(LinearDiscriminantAnalysis()) for a classification."
            )

    def _open(
        self, X: Array, y: NDArray[Any] | None, params: dict[str, Any], done: Record
    ) -> Counted:
        on_device = device_asked() is not None and self.criterion.runs_on_device
        # costs are those of tables in which every entry is held, on the processor
        if not (on_device or is_sparse(X) or isinstance(X, BlockTable)):
            name = f"{type(self).__name__}({type(self.criterion).__name__})"
            check_cost(name, self.criterion.cost, *X.shape)
        grouping = done.grouping
        self.criterion.grouped(grouping.members)
        scaled = self.standardize and not self.criterion.reads_scale
        if isinstance(X, BlockTable):
            self.criterion.fit(X.scaled(type(self.criterion).__name__, scaled))
        else:
            self.criterion.fit(standardised(X) if scaled else X, y, **self._routed(params))
        for chosen in done.trace.params.values():
            self.criterion.use(chosen)
        return Counted(self.criterion, done.trace.n_evaluations, grouping.fixed_units)

    def _settle(self, record: Record, X: Array, y: NDArray[Any] | None) -> None:
        super()._settle(record, X, y)
        self.gains_until_ = gains_until(record.trace, record.chosen)

    def _doubts(self, criterion: Any) -> Iterator[Doubt]:
        yield from super()._doubts(criterion)
        if self.gains_until_ is not None:
            yield f"{type(self).__name__}: {self._gained()}", NothingGained

    def _reasons(self) -> list[str]:
        gained = [] if self.gains_until_ is None else [self._gained()]
        return super()._reasons() + gained

    def _gained(self) -> str:
        """Say from which size on the walk gained nothing."""
        sizes, values = self.trace_.sizes, self.trace_.values
        least, chosen = self.gains_until_, self.choice_.step
        there = values[: chosen + 1][sizes[: chosen + 1] == least].max()
        word = "column" if self.units_.plain else "unit"
        return (
            f"from {counted(least, word)} on the walk gains nothing: their value is {there:.4g}, "
            f"that of the {sizes[chosen]} kept {values[chosen]:.4g}. Ask for fewer, or look at "
            "trace_.values."
        )

    @property
    def takes_categories(self) -> bool:
        """As the criterion does."""
        return bool(getattr(self.criterion, "takes_categories", False))

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """As the criterion and the choice do."""
        return bool(getattr(self.criterion, "takes_blocks", False) and self._choice().takes_blocks)

    @property
    def _takes_metadata(self) -> bool:
        return bool(self.criterion.takes_metadata)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return params
        return dict(process_routing(self, "fit", **params).criterion.fit) if params else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the criterion's ``fit``."""
        return MetadataRouter(owner=self).add(criterion=self.criterion, method_mapping=FITTING)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(getattr(self.criterion, "needs_target", True))
        read_tags(tags, self.criterion)
        return tags


def check_capability(search: Search, criterion: Any) -> None:
    """Refuse a criterion that the search cannot walk with, and say what to write instead."""
    name = type(search).__name__
    if isinstance(criterion, search.needs):
        return
    wanted = " or ".join(SPOKEN[need][0] for need in search.needs)
    if not isinstance(criterion, Criterion):
        raise IncompatibleCriterion(
            f"{name} needs a criterion that gives {wanted}, not {criterion!r}. Wrap an estimator "
            f"as {name}(CrossValidated(estimator)) or a function of (X, y) as "
            f"{name}(Scored(function))."
        )
    scored_by = type(criterion).__name__
    _, can, instead = next(SPOKEN[c] for c in SPOKEN if isinstance(criterion, c))
    raise IncompatibleCriterion(
        f"{name} needs {wanted}; {scored_by} {can}. Use {instead}({scored_by}(...)), or "
        f"{name}(CrossValidated(estimator))."
    )
