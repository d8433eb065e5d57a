"""Rank fusion: combination of the column orders of several searches."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
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
from tamis._seeds import Seed, draw_seed, seed_of, stream
from tamis.blocks.inputs import check_data
from tamis.contract import Embedded, Entries, Scores, Selection
from tamis.contract.choice import SizeLike
from tamis.contract.composition import combine_tags
from tamis.contract.costs import FeatureCosts
from tamis.contract.steps import Event
from tamis.contract.units import Groups
from tamis.exceptions import IncompatibleCriterion, TamisWarning
from tamis.meta.inner_search import (
    check_first,
    fit_search,
    path_size,
    search_cost,
    standing_of,
    walk_of,
)
from tamis.meta.repeats import readable_rounds
from tamis.validation.resamples import parts_of, plain_groups_of, rows_of
from tamis.validation.stability import Stability, stability


def _borda(ranks: Array) -> Array:
    """Return the Borda count of each column.

    This is the number of columns that are ranked lower, summed over searches.
    """
    return np.asarray((ranks.shape[1] - ranks).sum(axis=0))


def _mean_rank(ranks: Array) -> Array:
    return np.asarray(-ranks.mean(axis=0))


def _reciprocal(ranks: Array) -> Array:
    """Return the sum over searches of 1 / (60 + rank) for each column (Cormack et al. 2009)."""
    return np.asarray((1 / (60 + ranks)).sum(axis=0))


RULES = {"borda": _borda, "mean-rank": _mean_rank, "reciprocal": _reciprocal}


@dataclass(eq=False, repr=False)
class Fusion(Embedded):
    """Rank fusion: one order of the columns from the orders of several searches.

    Each search ranks all columns. A forward search stops at 40 columns, and all remaining columns
    share their mean rank. The ranks are combined by Borda count, by their mean, or by the sum of
    reciprocal ranks. Reciprocal ranks give most weight to the first columns. The fusion accepts NaN
    or sparse tables if all of its searches do.

    Parameters
    ----------
    searches : list of selections
        The searches to combine.
    by : {"borda", "mean-rank", "reciprocal"}, default="borda"
        How ranks are combined.
    n_features_to_select : int, float or Choice, default=0.5
        Number of units to select: a count, a fraction, or a rule.
    feature_groups : mapping, sequence or None, default=None
        Columns that are selected together in all searches, see :class:`tamis.search.Forward`.
    feature_costs : FeatureCosts or None, default=None
        Prices of the columns, see :class:`tamis.search.Forward`.
    random_state : int, generator or None, default=None
        Seed of the searches.
    n_jobs : int or None, default=None
        Number of searches in parallel.

    Attributes
    ----------
    ranks_ : array of shape (n_searches, n_units)
        The rank of each unit in each search. The best unit has rank 1.

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

    _constraints: ClassVar[Constraints] = {"by": one_of(*RULES)}

    searches: Sequence[Selection]
    _: KW_ONLY
    by: str = "borda"
    n_features_to_select: SizeLike = 0.5
    feature_groups: Groups = None
    feature_costs: FeatureCosts | None = None
    random_state: Seed = None
    n_jobs: int | None = None

    def _check(self) -> None:
        if not isinstance(self.searches, list | tuple) or not self.searches:
            raise IncompatibleCriterion(
                f"Fusion needs a list of searches, not {self.searches!r}. Write "
                "Fusion([Ranking(FisherScore()), Forward(JMI())])."
            )
        for search in self.searches:
            if not isinstance(search, Selection):
                raise IncompatibleCriterion(f"Fusion needs searches only, not {search!r}.")
            own = (search.fixed_features, search.feature_groups, search.feature_costs)
            if any(given is not None for given in own):
                raise IncompatibleCriterion(
                    "Fusion needs the same units in all searches, but one of them has its own "
                    "feature_groups, fixed_features or feature_costs. Give feature_groups and "
                    "feature_costs to Fusion."
                )
            check_first("Fusion", search)
            walk = walk_of(search)
            if "n_features_to_select" not in walk.get_params(deep=False):
                name = type(walk).__name__
                raise IncompatibleCriterion(
                    f"Fusion needs searches that rank all columns, but {name} chooses the number "
                    f"of columns itself. Pass the search inside {name} to Fusion, or write "
                    f"{name}(Fusion([...]))."
                )
            search.check()
        super()._check()

    def _check_target(self, y: NDArray[Any] | None) -> None:
        for search in self.searches:
            search._check_target(y)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the largest search needs.

        It is None if the memory of any search is unknown.
        """
        found = [search_cost(search, n_samples, n_features) for search in self.searches]
        known = [held for held in found if held is not None]
        return max(known) if len(known) == len(found) else None

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        found = dict(state.get("ranks", {}))
        labels = None if self._units.plain else self._units.unit_of
        items = (
            (index, (search, labels, X, y, seed_of(seed, "search", index)))
            for index, search in enumerate(self.searches)
            if str(index) not in found
        )
        for index, ranks in parallel_stream(_ranks_of, items, n_jobs=self.n_jobs, shared=[X, y]):
            found[str(index)] = ranks.tolist()
            yield {"ranks": dict(found)}

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        with readable_rounds(self):
            ranks = [state["ranks"][str(i)] for i in range(len(self.searches))]
            self.ranks_ = np.array(ranks, dtype=float).reshape(len(ranks), self._units.n_units)

    def _ranked(self) -> Iterator[Event]:
        scores = RULES[self.by](self.ranks_)
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
        """Estimate the stability across resamples of the fusion and of each of its searches.

        The fusion and its searches are fitted to the same stratified subsamples of the rows. Each
        search selects the same number of columns as the fusion.

        Parameters
        ----------
        X : array, pandas or polars frame of shape (n_samples, n_features)
            As for ``fit``.
        y : array of shape (n_samples,)
            As for ``fit``.
        n_resamples : int, default=20
            Number of subsamples. All searches are fitted to each of them.
        share : float, default=0.8
            Share of the rows in a subsample. Larger subsamples overlap more and look more stable,
            so use the result only to compare the fusion and its searches with each other.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        dict of str to tamis.evaluation.Stability
            The stability of the fusion (with the key "Fusion"), followed by the stability of each
            search (with its expression as key).

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
        """Return "Fusion" and the expressions of the searches. Repeated names get a number."""
        names = ["Fusion"]
        for search in self.searches:
            name = write(search, strict=False)
            n_same = sum(other.split(" #")[0] == name for other in names)
            names.append(f"{name} #{n_same + 1}" if n_same else name)
        return names

    @property
    def takes_categories(self) -> bool:
        """Whether all searches accept columns of category codes."""
        return all(bool(search.takes_categories) for search in self.searches)

    def __sklearn_tags__(self) -> Tags:
        return combine_tags(super().__sklearn_tags__(), self.searches)


def _first_units(
    fusion: Fusion, X: Array, y: NDArray[Any] | None, rows: NDArray[np.intp], seed: int
) -> list[NDArray[np.intp]]:
    """Fit a fusion to the given rows.

    Return the units that the fusion selects, and the same number of best units of each search.
    """
    part = clone(fusion).set_params(random_state=seed)
    with warnings.catch_warnings(action="ignore", category=TamisWarning):
        part.fit(X[rows], None if y is None else y[rows])
    units = np.flatnonzero(part.unit_support_)
    return [units, *(np.sort(best_first(-ranks)[: len(units)]) for ranks in part.ranks_)]


def _ranks_of(
    search: Any, labels: Subset | None, X: Array, y: NDArray[Any] | None, seed: int
) -> Array:
    """Fit a search, and return the rank of each unit. Ties get their mean rank."""
    n_units = X.shape[1] if labels is None else int(labels.max()) + 1
    standing = standing_of(fit_search(search, X, y, seed, path_size(search, n_units), labels))
    return np.asarray(rankdata(-standing))
