"""Several searches, one order."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from tamis._arrays import Array, best_first
from tamis._parallel import parallel_stream
from tamis._random import fix_seeds
from tamis.choice.rounds import seed_of, sized, standing_of, walk_cost, whole_walk
from tamis.contract import Cost, Embedded, Entries, Event, Scores, Selection, SizeLike
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, TamisWarning


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
    by the mean place, or by reciprocals of the places, which let the first ones count most.

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
            search._check()
        if self.by not in WAYS:
            raise InvalidParameter(f"Fusion needs by in {sorted(WAYS)}, not {self.by!r}.")
        super()._check()

    def _check_target(self, y: NDArray[Any] | None) -> None:
        for search in self.searches:
            search._check_target(y)

    def cost(self, n_samples: int, n_features: int) -> Cost | None:
        """Of one search after the other; None where one of them cannot say."""
        found = []
        for search in self.searches:
            size = whole_walk(search, n_features)
            cost = walk_cost(search, n_samples, n_features, size)
            if cost is None:
                return None
            found.append(cost)
        return Cost(sum(cost.operations for cost in found), max(cost.bytes for cost in found))

    def _stages(
        self, X: Array, y: NDArray[Any] | None, seed: int, state: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        found = dict(state.get("ranks", {}))
        labels = None if self._units is None or self._units.plain else self._units.unit_of.tolist()
        items = (
            (index, clone(search), labels, X, y, seed_of(seed, "search", index))
            for index, search in enumerate(self.searches)
            if str(index) not in found
        )
        for index, ranks in parallel_stream(_ranks_of, items, n_jobs=self.n_jobs, shared=[X, y]):
            found[str(index)] = ranks
            yield {"ranks": dict(found)}

    def _restore(self, X: Array, y: NDArray[Any] | None, state: dict[str, Any]) -> None:
        self.ranks_ = np.array([state["ranks"][str(i)] for i in range(len(self.searches))])

    def _ranked(self) -> Iterator[Event]:
        scores = WAYS[self.by](self.ranks_)
        everything = np.arange(len(scores))
        nothing = np.full(len(scores), np.nan)
        yield Entries(best_first(scores), Scores(everything, scores), nothing)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        parts = [search.__sklearn_tags__() for search in self.searches]
        tags.target_tags.required = any(part.target_tags.required for part in parts)
        return tags


def _ranks_of(
    index: int,
    search: Any,
    labels: list[int] | None,
    X: Array,
    y: NDArray[Any] | None,
    seed: int,
) -> tuple[int, list[float]]:
    """The place of every unit in the order of one search; equals share the mean of theirs."""
    n_units = X.shape[1] if labels is None else max(labels) + 1
    sized(search, whole_walk(search, n_units))
    search.set_params(feature_groups=labels)
    fix_seeds(search, root=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        standing = standing_of(search.fit(X, y))
    return index, rankdata(-standing).tolist()
