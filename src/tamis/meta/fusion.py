"""Several searches, one order."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import Tags

from tamis._arrays import Array, Subset, best_first
from tamis._checks import Constraints, check_values, integer, number, one_of
from tamis._expression import write
from tamis._parallel import parallel_stream
from tamis._seeds import draw_seed, seed_of, stream
from tamis.blocks.inputs import check_data
from tamis.contract import Embedded, Entries, Scores, Selection
from tamis.contract.choice import SizeLike
from tamis.contract.composition import combine_tags
from tamis.contract.steps import Event
from tamis.exceptions import IncompatibleCriterion, TamisWarning
from tamis.meta.inner_search import (
    check_first,
    standing_of,
    walk_cost,
    walk_of,
    walked,
    whole_walk,
)
from tamis.meta.repeats import readable_rounds
from tamis.validation.resamples import parts_of, plain_groups_of, rows_of
from tamis.validation.stability import Stability, stability


def _borda(ranks: Array) -> Array:
    """Points for every column that stands behind, summed over searches."""
    return np.asarray((ranks.shape[1] - ranks).sum(axis=0))


def _mean_rank(ranks: Array) -> Array:
    return np.asarray(-ranks.mean(axis=0))


def _reciprocal(ranks: Array) -> Array:
    """1 / (60 + rank), summed: places far down hardly count (Cormack et al. 2009)."""
    return np.asarray((1 / (60 + ranks)).sum(axis=0))


WAYS = {"borda": _borda, "mean-rank": _mean_rank, "reciprocal": _reciprocal}


class Fusion(Embedded):
    """One order of the columns from those of several searches.

    Each search orders all columns (one that only adds walks to 40 of them; those it never came to
    share the middle of the places that are left), and the places are added up: by Borda's points,
    by the mean place, or by reciprocals of the places, which let the first ones count most. What
    all of the searches take, such as NaN or a sparse table, the fusion takes.

    Parameters
    ----------
    searches : list of selections
    by : {"borda", "mean-rank", "reciprocal"}, default="borda"
    n_features_to_select : int, float or Choice, default=0.5
    feature_groups : mapping, sequence or None, default=None
        As of a search; the groups of the searches inside are these.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None
        Searches at the same time.

    Attributes
    ----------
    ranks_ : array of shape (n_searches, n_units)
        The place of every unit in every search, 1 for the first.

    References
    ----------
    Cormack, Clarke and Buettcher (2009), Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.criteria import FisherScore, MutualInformation
    >>> from tamis.search import Ranking
    >>> both = Fusion([Ranking(FisherScore()), Ranking(MutualInformation())],
    ...               n_features_to_select=2)
    >>> both.fit(*load_iris(return_X_y=True)).order_
    array([2, 3, 0, 1])
    """

    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), ...)"
    quick: ClassVar[str] = "correlation"

    _constraints: ClassVar[Constraints] = {"by": one_of(*WAYS)}

    def __init__(
        self,
        searches: Sequence[Selection],
        *,
        by: str = "borda",
        n_features_to_select: SizeLike = 0.5,
        feature_groups: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.searches = searches
        self.by = by
        self.n_features_to_select = n_features_to_select
        self.feature_groups = feature_groups
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check(self) -> None:
        if not isinstance(self.searches, list | tuple) or not self.searches:
            raise IncompatibleCriterion(
                f"Fusion needs a list of searches, not {self.searches!r}. Write "
                "Fusion([Ranking(FisherScore()), Forward(JMI())])."
            )
        for search in self.searches:
            if not isinstance(search, Selection):
                raise IncompatibleCriterion(f"Fusion needs searches, not {search!r} among them.")
            if search.fixed_features is not None or search.feature_groups is not None:
                raise IncompatibleCriterion(
                    "Fusion orders the same units in all of its searches, and one of them has "
                    "feature_groups or fixed_features of its own. Give feature_groups to Fusion."
                )
            check_first("Fusion", search)
            walk = walk_of(search)
            if "n_features_to_select" not in walk.get_params(deep=False):
                name = type(walk).__name__
                raise IncompatibleCriterion(
                    f"Fusion adds up places of all columns, and {name} decides itself how many it "
                    f"keeps. Give Fusion the search inside it, and write {name}(Fusion([...])) to "
                    "have both."
                )
            search.check()
        super()._check()

    def _check_target(self, y: NDArray[Any] | None) -> None:
        for search in self.searches:
            search._check_target(y)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Of one search after the other; None where one of them cannot say."""
        found = [walk_cost(search, n_samples, n_features) for search in self.searches]
        known = [held for held in found if held is not None]
        return max(known) if len(known) == len(found) else None

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        found = dict(state.get("ranks", {}))
        labels = None if self._units.plain else self._units.unit_of
        items = (
            (index, search, labels, X, y, seed_of(seed, "search", index))
            for index, search in enumerate(self.searches)
            if str(index) not in found
        )
        for index, ranks in parallel_stream(_ranks_of, items, n_jobs=self.n_jobs, shared=[X, y]):
            found[str(index)] = ranks
            yield {"ranks": dict(found)}

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        with readable_rounds(self):
            ranks = [state["ranks"][str(i)] for i in range(len(self.searches))]
            self.ranks_ = np.array(ranks, dtype=float).reshape(len(ranks), self._units.n_units)

    def _ranked(self) -> Iterator[Event]:
        scores = WAYS[self.by](self.ranks_)
        everything = np.arange(len(scores))
        nothing = np.full(len(scores), np.nan)
        yield Entries(best_first(scores), Scores(everything, scores), nothing)

    def stability(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        n_resamples: int = 20,
        share: float = 0.8,
        level: float = 0.95,
    ) -> dict[str, Stability]:
        """How far what is kept depends on the rows: of the fusion, and beside it of its members.

        All are fitted to the same parts of the rows, drawn without replacement with the classes in
        proportion, and each keeps its first columns, as many as the fusion does.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            As for ``fit``.
        y : array of shape (n_samples,)
            As for ``fit``.
        n_resamples : int, default=20
            Parts that are drawn; each costs a fit of all searches.
        share : float, default=0.8
            Of the rows that a part has. What is compared is how the members fare: the value itself
            rises with the rows that parts have in common.
        level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        dict of str to tamis.evaluation.Stability
            The fusion first, by the name "Fusion"; its members by their expressions.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from tamis.criteria import FisherScore, MutualInformation
        >>> from tamis.search import Ranking
        >>> both = Fusion([Ranking(FisherScore()), Ranking(MutualInformation())],
        ...               n_features_to_select=8, random_state=0)
        >>> for name, found in both.stability(*load_breast_cancer(return_X_y=True)).items():
        ...     print(name, found)
        Fusion <Stability 0.954 in [0.917, 0.992]>
        Ranking(FisherScore()) <Stability 0.933 in [0.9, 0.965]>
        Ranking(MutualInformation()) <Stability 0.909 in [0.852, 0.967]>
        """
        asked = {"n_resamples": integer(2), "share": number(above=0, below=1)}
        check_values("Fusion.stability", asked, n_resamples=n_resamples, share=share)
        fresh = clone(self)
        table, target = check_data(fresh, X, y)
        grouping, seed = fresh._grouping(table), draw_seed(self.random_state)
        fresh.set_params(feature_groups=None if grouping.plain else grouping.unit_of.tolist())
        groups = plain_groups_of(target, table.shape[0])
        kept: list[list[NDArray[np.intp]]] = []
        for index in range(n_resamples):
            size = rows_of(float(share), table.shape[0])
            (rows,) = parts_of(groups, (size,), stream(seed, "rows", index))
            kept.append(_first_units(fresh, table, target, rows, seed_of(seed, "fit", index)))
        found = (stability(each, grouping.n_units, level=level) for each in zip(*kept, strict=True))
        return dict(zip(self._member_names(), found, strict=True))

    def _member_names(self) -> list[str]:
        """The fusion, and its members by their expressions; of equals the second has a number."""
        names = ["Fusion"]
        for search in self.searches:
            name = write(search, strict=False)
            n_same = sum(other.split(" #")[0] == name for other in names)
            names.append(f"{name} #{n_same + 1}" if n_same else name)
        return names

    @property
    def takes_categories(self) -> bool:
        """Where all members do."""
        return all(bool(search.takes_categories) for search in self.searches)

    def __sklearn_tags__(self) -> Tags:
        return combine_tags(super().__sklearn_tags__(), self.searches)


def _first_units(
    fusion: Fusion, X: Array, y: NDArray[Any] | None, rows: NDArray[np.intp], seed: int
) -> list[NDArray[np.intp]]:
    """What a fusion of some rows keeps, and as many units that stand first in each member."""
    part = clone(fusion).set_params(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        part.fit(X[rows], None if y is None else y[rows])
    units = np.flatnonzero(part.unit_support_)
    return [units, *(np.sort(best_first(-ranks)[: len(units)]) for ranks in part.ranks_)]


def _ranks_of(
    index: int,
    search: Any,
    labels: Subset | None,
    X: Array,
    y: NDArray[Any] | None,
    seed: int,
) -> tuple[int, list[float]]:
    """The place of every unit in the order of one search; equals share the mean of theirs."""
    n_units = X.shape[1] if labels is None else int(labels.max()) + 1
    standing = standing_of(walked(search, X, y, seed, whole_walk(search, n_units), labels))
    return index, rankdata(-standing).tolist()
