"""Selections around a search: run again on other rows, or on a wider table, and counted."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from tamis._arrays import Array, Subset, best_first, class_codes, target_kind
from tamis._parallel import parallel_stream
from tamis._random import fix_seeds, stream
from tamis.contract import (
    Chosen,
    Cost,
    Embedded,
    Entries,
    Event,
    Run,
    Scores,
    Search,
    Selection,
    SizeLike,
)
from tamis.contract.choice import counted
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    TamisError,
    TamisWarning,
)
from tamis.search.categories import for_columns

#: Columns that a walk which only adds enters in a round: those beyond hardly ever decide, and a
#: walk through a wide table takes as long as all else together.
STEPS = 40
#: Operations of a fit beside its scores: clones, units, the record.
OF_A_FIT = 4e6


#: A number of columns of which every number of features that people ask for can be kept.
MANY = 10**9


class Verdict(NamedTuple):
    """How many of the columns, best first, are kept, and why."""

    n_kept: int
    reason: str


class InRounds(Embedded):
    """Selection that comes to its answer in rounds, each of which stands for itself.

    A subclass says what one round finds (:meth:`_round`), what the rounds say of each column
    (:meth:`_standing`) and where to cut (:meth:`_verdict`). Rounds are drawn by number, run on
    ``n_jobs`` processes or the active joblib backend, and kept in the record one by one.
    """

    n_jobs: int | None

    # -- what a subclass says ---------------------------------------------------------------------

    @abstractmethod
    def _n_rounds(self) -> int:
        """How many rounds there are."""

    @abstractmethod
    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """What one round finds, as plain numbers."""

    def _usable(self, found: dict[str, list[Any]]) -> dict[str, list[Any]] | None:
        """The first of the rounds where those suffice, None where all that are left are needed."""
        return None

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """What is left to do after the rounds, as plain numbers."""
        return []

    @abstractmethod
    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        """Score of each unit by all rounds, greater is better."""

    @abstractmethod
    def _verdict(self, scores: Array) -> Verdict:
        """Where the columns, sorted by score, are cut; the scores fall."""

    # -- what they share --------------------------------------------------------------------------

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        with readable_rounds(self):
            found = dict(state.get("rounds", {}))
        n_rounds = self._n_rounds()
        for index, numbers in self._played(X, y, seed, found):
            found[str(index)] = numbers
            yield {"rounds": dict(found), "n_rounds": n_rounds}
            if (usable := self._usable(found)) is not None:
                found = usable
                break
        if "rest" not in state:
            with readable_rounds(self):
                in_order = _in_order(found)
            rest = self._rest(X, y, seed, in_order)
            yield {"rounds": found, "n_rounds": n_rounds, "rest": rest}

    def _played(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: dict[str, list[Any]]
    ) -> Iterator[tuple[int, list[Any]]]:
        """The rounds that are not found yet, as they end; ``found`` grows by them meanwhile."""
        return self._at_once(X, y, seed, found, range(self._n_rounds()))

    def _at_once(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        found: dict[str, list[Any]],
        block: range,
    ) -> Iterator[tuple[int, list[Any]]]:
        """Those of a block that are not found yet: none of them waits for another."""
        bare = copy(self).set_callbacks()  # which hold what no process can be sent: a terminal
        items = ((bare, X, y, seed, index) for index in block if str(index) not in found)
        return parallel_stream(_one_round, items, n_jobs=self.n_jobs, shared=[bare, X, y])

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        with readable_rounds(self):
            found = _in_order(state["rounds"])
            self._scores = self._standing(self._n_units(X), found, state["rest"])

    def _ranked(self) -> Iterator[Event]:
        order = best_first(self._scores)
        everything = np.arange(len(order))
        nothing = np.full(len(order), np.nan)
        yield Entries(order, Scores(everything, self._scores), nothing)

    def _picked(self, run: Run) -> Chosen:
        self._units = run.start.grouping
        self._restore(run.X, run.y, run.trace.state)
        order = best_first(self._scores)
        n_kept, reason = self._verdict(self._scores[order])
        if not len(run.fixed):
            return Chosen(n_kept - 1, reason)
        # a composition may fix units: they are the first step, whatever the rounds say of them
        found = np.setdiff1d(order[:n_kept], run.fixed)
        return Chosen(len(found), reason + run.context.beside_fixed)

    def _say_doubts(self, run: Run) -> None:
        if not self.n_features_:  # ties are told apart by lot
            self._say_nothing_found()

    def _size(self, n_units: int) -> int | None:
        return None

    def _enough(self, run: Run) -> bool:
        return False

    def _unsized(self, bare: Any) -> Any:
        return bare

    def _n_units(self, X: Array) -> int:
        return X.shape[1] if self._units is None else self._units.n_units

    def _counted(self, n: Any) -> str:
        """A number of units, in words."""
        return counted(n, "column" if self._units is None else self._units.word)

    @property
    def _labels(self) -> Subset | None:
        """The unit of each column, None where units are columns."""
        units = self._units
        return None if units is None or units.plain else units.unit_of


class Rounds(MetaEstimatorMixin, InRounds):
    """Selection that runs a search many times and keeps what the rounds agree on."""

    #: How many columns are kept is what the rounds decide.
    n_features_to_select: SizeLike = "best"
    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), ...)"
    quick: ClassVar[str] = "correlation"
    #: Whether the order in which the search takes the columns is read, not only what it keeps.
    reads_order: ClassVar[bool] = True
    #: Whether NaN and categories, and several targets, are passed on to a search that takes them:
    #: nothing but the search then reads the columns.
    passes_nan: ClassVar[bool] = False
    passes_targets: ClassVar[bool] = False

    search: Selection

    def _check(self) -> None:
        if not isinstance(self.search, Selection):
            name = type(self).__name__
            raise IncompatibleCriterion(
                f"{name} needs a search, not {self.search!r}. Write {name}(Ranking(Correlation()))."
            )
        if self.search.fixed_features is not None:
            raise IncompatibleCriterion(
                f"{type(self).__name__} asks of every column whether it is kept, and the search "
                "has fixed_features. Leave them out there, and add the columns afterwards."
            )
        check_first(type(self).__name__, self.search)
        self._check_walk(walk_of(self.search))
        self.search._check()

    def _check_walk(self, walk: Any) -> None:
        """Refuse a search that cannot be asked for a number of columns, or has no order of them."""
        name, inner = type(self).__name__, type(walk).__name__
        if "n_features_to_select" not in walk.get_params(deep=False):
            write = (
                f"Then(..., {name}(...))" if isinstance(walk, Rounds) else f"{inner}({name}(...))"
            )
            raise IncompatibleCriterion(
                f"{name} asks its search for a number of columns, and {inner} decides itself how "
                f"many it keeps. Give {name} the search inside it, and write {write} to have both."
            )
        if self.reads_order and not (walk.nested or walk.extends):
            raise IncompatibleCriterion(
                f"{name} reads the order in which a search takes the columns, and {inner} finds "
                f"one subset of a given size. Use {name}(Forward(...)), or "
                f"StabilitySelection({inner}(...)), which asks what is kept."
            )

    @property
    def feature_groups(self) -> Any:
        """Those of the search."""
        return self.search.feature_groups

    def _check_target(self, y: NDArray[Any] | None) -> None:
        self.search._check_target(y)

    def cost(self, n_samples: int, n_features: int) -> Cost | None:
        """Of all rounds, of which ``n_jobs`` are held at once; None where the search cannot say."""
        one = self._cost_of_round(n_samples, n_features)
        if one is None:
            return None
        n_rounds = self._n_rounds()
        at_once = 1 if self.n_jobs is None else min(effective_n_jobs(self.n_jobs), n_rounds)
        return Cost(n_rounds * one.operations, at_once * one.bytes)

    @abstractmethod
    def _cost_of_round(self, n_samples: int, n_features: int) -> Cost | None:
        """What one round takes, None where the search cannot say."""

    def _cost_beside(self, n_samples: int, n_features: int) -> Cost | None:
        """What a search on a table and its double takes (:meth:`_beside`)."""
        n, d = n_samples, 2 * n_features
        walk = walk_cost(self.search, n, d, whole_walk(self.search, d))
        # half a copy, and both halves side by side
        return walk and Cost(walk.operations + 10.0 * n * d, walk.bytes + 8 * 1.5 * n * d)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.search.__sklearn_tags__()
        tags.target_tags.required = inner.target_tags.required
        tags.target_tags.multi_output = self.passes_targets and inner.target_tags.multi_output
        tags.input_tags.allow_nan = self.passes_nan and inner.input_tags.allow_nan
        return tags

    @property
    def takes_categories(self) -> bool:  # type: ignore[override]
        """As the search does, where nothing else reads the columns."""
        return self.passes_nan and bool(self.search.takes_categories)

    def _beside(
        self,
        X: Array,
        others: Array,
        y: NDArray[Any] | None,
        seed: int,
        rng: np.random.Generator,
        field: Subset | None = None,
    ) -> tuple[Array, Array]:
        """What the search thinks of each unit and of its double in a table of the same columns.

        The columns are shuffled, so that no index is preferred. With a ``field`` only these units
        and their doubles are in the table, and minus infinity stands for the others.
        """
        d = X.shape[1]
        labels = np.arange(d) if self._labels is None else self._labels
        n_units = int(labels.max()) + 1
        inside = np.arange(d) if field is None else np.flatnonzero(np.isin(labels, field))
        place = rng.permutation(np.concatenate([inside, inside + d]))
        both = np.concatenate([labels, labels + n_units])[place]
        wide = np.hstack([X, others])[:, place]
        size = whole_walk(self.search, len(np.unique(both)))
        search = for_columns(self.search, place % d, d)
        fitted = self._fitted(wide, y, seed, size, None if self._labels is None else both, search)
        standing = np.full(2 * n_units, -np.inf)
        standing[in_order_of_columns(both)] = standing_of(fitted)
        return standing[:n_units], standing[n_units:]

    def _fitted(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        size: int,
        labels: Subset | None = None,
        search: Selection | None = None,
    ) -> Selection:
        """A clone of the search that walked to a size, with seeds; ``labels`` are the units."""
        search = self.search if search is None else search
        return walked(search, X, y, seed, size, self._labels if labels is None else labels)


def check_first(name: str, search: Any) -> None:
    """Refuse a composition of which nobody knows how many columns its second part sees."""
    while hasattr(search, "second"):
        if search.first._size(MANY) is None:
            raise IncompatibleCriterion(
                f"{name} needs to know how many columns the first part of Then keeps, and "
                f"{type(search.first).__name__} leaves that to the data. Ask it for a number of "
                "features, or for a fraction."
            )
        search = search.second


def check_part(name: str, y: NDArray[Any] | None, rows: Subset) -> None:
    """Refuse a single row, and rows of one class where others are too few to be everywhere."""
    if len(rows) < 2:
        raise InvalidTable(
            f"{name} searches in parts of the rows, one of which has a single row. Give more rows, "
            "or use Probes(...), which searches in all of them."
        )
    if y is None or y.ndim > 1 or y.dtype.names is not None or target_kind(y) != "classification":
        return
    labels, codes = class_codes(y)
    if len(labels) > 1 and (codes[rows] == codes[rows[0]]).all():
        counts = np.bincount(codes)
        fewest = int(np.argmin(counts))
        n = f"is {counts[fewest]} row" if counts[fewest] == 1 else f"are {counts[fewest]} rows"
        raise InvalidTarget(
            f"{name} searches in parts of the rows, one of which has a single class: of class "
            f"{str(labels[fewest])!r} there {n}. Leave the class out, or use Probes(...), which "
            "searches in all rows."
        )


@contextmanager
def readable_rounds(selection: Embedded) -> Iterator[None]:
    """Refuse rounds of a record that are not what rounds find.

    It stands around reading alone: an error of a search that goes on is not one of the record.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, TamisError):
            raise
        raise InvalidTable(
            f"This is a damaged record: {type(selection).__name__} cannot read its rounds "
            f"({type(error).__name__}: {error}). Start the search anew."
        ) from error


def _in_order(rounds: dict[str, list[Any]]) -> list[list[Any]]:
    found = [rounds[str(index)] for index in range(len(rounds))]
    if not all(isinstance(one, list) for one in found):
        raise TypeError("a round that is no list")
    return found


def _one_round(
    selection: InRounds, X: Array, y: NDArray[Any] | None, seed: int, index: int
) -> tuple[int, list[Any]]:
    return index, selection._round(X, y, seed, index)


def walked(
    search: Selection,
    X: Array,
    y: NDArray[Any] | None,
    seed: int,
    size: int,
    labels: Subset | None = None,
) -> Selection:
    """A clone of a search that walked to a size, with seeds; ``labels`` are the units."""
    search = clone(search)
    sized(search, size)
    search.set_params(feature_groups=None if labels is None else labels.tolist())
    fix_seeds(search, root=seed)
    with warnings.catch_warnings():  # said once, by the search itself, not by every round
        warnings.simplefilter("ignore", TamisWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return search.fit(X, y)


def walk_of(search: Any) -> Any:
    """The search itself, or the last part of a composed one."""
    while hasattr(search, "second"):
        search = search.second
    return search


def sized(search: Any, size: int) -> None:
    """Ask a search, or the last part of a composed one, for a number of columns."""
    walk_of(search).set_params(n_features_to_select=size)


def expected_unrelated(n: float) -> str:
    """How many of the columns kept are expected to be unrelated, in words.

    >>> expected_unrelated(0.2)
    '0.2 of those kept is expected to be unrelated to the target.'
    """
    return (
        f"{n:g} of those kept {'is' if n <= 1 else 'are'} expected to be unrelated to the target."
    )


def in_order_of_columns(labels: Subset) -> Subset:
    """The units of some columns as a search numbers them: by their first columns.

    >>> in_order_of_columns(np.array([4, 1, 4, 0]))
    array([4, 1, 0])
    """
    found: Subset = labels[np.sort(np.unique(labels, return_index=True)[1])]
    return found


def standing_of(search: Selection) -> Array:
    """What a fitted search thinks of each column: greater is better, equal where it cannot say.

    The score where columns are scored alone; elsewhere less the place in the order, and minus
    infinity where a walk never came to a column.
    """
    if search.scores_alone:
        return np.asarray(search.scores_, dtype=float)
    n = len(search.order_)
    places = np.empty(n)
    places[search.order_] = -np.arange(n, dtype=float)
    moves = search.trace_.moves()
    if len(moves.unit) and moves.entered.all() and not hasattr(search, "second_"):
        came = np.zeros(n, dtype=bool)
        came[moves.unit] = True
        places[~came] = -np.inf
    return places


def walk_cost(search: Any, n_samples: int, n_features: int, size: int) -> Cost | None:
    """What a search that walks to a size takes, None where its criterion cannot say."""
    if isinstance(search, Search):
        n_rounds = search._n_rounds(n_features, size)
        own = search.criterion.cost(n_samples, n_features, n_rounds)
        cells = float(n_samples) * n_features
        return own and Cost(own.operations + OF_A_FIT + 20 * cells, own.bytes + 1e5 + 16 * cells)
    if not hasattr(search, "second"):
        return cast("Cost | None", search.cost(n_samples, n_features))
    kept = kept_first(search, n_features)
    first = walk_cost(search.first, n_samples, n_features, kept)
    second = walk_cost(search.second, n_samples, kept, min(size, kept))
    if first is None or second is None:
        return None
    return Cost(first.operations + second.operations, max(first.bytes, second.bytes))


def kept_first(search: Any, n_units: int) -> int:
    """How many units the first part of a composed search leaves."""
    try:
        return search.first._size(n_units) or n_units
    except InvalidParameter:  # more than there are, which its fit will say
        return n_units


def whole_walk(search: Any, n_units: int) -> int:
    """The size to which a search must walk so that every column that matters has a place."""
    while hasattr(search, "second"):
        n_units = kept_first(search, n_units)
        search = search.second
    return min(STEPS, n_units) if search.grows else 1


def seed_of(seed: int, *labels: object) -> int:
    """A seed for the search of a round."""
    return int(stream(seed, *labels).integers(2**31))
