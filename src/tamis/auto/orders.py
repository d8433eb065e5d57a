"""The orders of the columns that Auto tries, computed on the training rows of a fold.

A unit is a single column, or a group of columns that are selected together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis._linalg import column_correlations
from tamis.auto.floating import floating_subsets
from tamis.auto.models import ForestImportances
from tamis.contract import Selection
from tamis.contract.units import Grouping
from tamis.criteria import JMI, Correlation, CoxScore, Importances, PairInformation
from tamis.meta.inner_search import fit_search, walk_of
from tamis.search import Forward, Ranking, RecursiveElimination, Then

#: Names of the column orders. If several are equally good, the first is chosen. "cox" is used for
#: censored targets only.
PATHS = (
    "information", "forest", "floating", "distinct information", "distinct forest", "interactions",
    "cox",
)  # fmt: skip
#: Suffix for the name of an order in which columns are selected by rank and price under a price
#: limit.
PER_PRICE = " per price"
#: Orders that are derived from another order by moving near-duplicates to the end.
DISTINCT = {"distinct information": "information", "distinct forest": "forest"}
#: Absolute correlation above which a column is a near-duplicate of another one.
DUPLICATE = 0.9
#: Near-duplicates are looked for among this number of units at the start of an order.
COMPARED = 400
#: Maximum number of columns that each search considers. If the table has more, an F-test preselects
#: this number of columns. A search over this number takes about a second.
SCREENED = {
    "information": 10_000, "forest": 10_000, "floating": 500, "interactions": 1000,
    "cox": 10_000_000,
}  # fmt: skip
#: Number of trees in the forest that ranks the columns, and the share of the columns that each step
#: of the elimination drops.
N_TREES, LEAVING = 60, 0.4
#: Number of columns that the order by joint information ranks. It is greater than the largest list,
#: because near-duplicates are moved to the end.
RANKED = 60
#: Level of the permutation test of the strongest interaction, and its numbers of permutations. The
#: second is only used if the first gives the smallest possible p-value.
LEVEL, PERMUTATIONS = 0.01, (9, 99)
#: Number of interactions from which columns are taken.
N_INTERACTIONS = 200


class Order(NamedTuple):
    """Units in order of importance.

    Attributes
    ----------
    ranking : array of int
        All units, the most important first.
    subsets : dict of int to array of int
        The best subset of a size, if it is not the start of the ranking.
    """

    ranking: Subset
    subsets: dict[int, Subset] = {}  # noqa: RUF012 (never written to)

    def first(self, size: int) -> Subset:
        """Return the units that are selected at this size."""
        return self.subsets.get(size, self.ranking[:size])

    def completed(self, size: int) -> Subset:
        """Return all units, starting with those that are selected at this size."""
        first = self.first(size)
        return np.concatenate([first, self.ranking[~np.isin(self.ranking, first)]])


def find_orders(
    paths: Sequence[str],
    X: Array,
    y: NDArray[np.generic],
    task: str,
    units: Grouping,
    size: int,
    seed: dict[str, int],
) -> dict[str, Order]:
    """Return the order of the units for each path.

    Parameters
    ----------
    paths : sequence of str
    X, y : array
        The training rows.
    task : str
    units : Grouping
    size : int
        Maximum number of units to select.
    seed : dict of str to int
        Seed of each path.
    """
    found: dict[str, Order] = {}
    for path in paths:
        base = DISTINCT.get(path, path)
        if base == "floating":
            found[path] = floating_order(X, y, task, units, size)
        elif base == "interactions":
            found[path] = interaction_order(X, y, task, units)
        elif base not in found:
            found[base] = searched_order(base, X, y, task, units, size, seed[base])
        if path in DISTINCT:
            found[path] = distinct_order(found[base], X, units)
    return {path: found[path] for path in paths}


def searched_order(
    path: str, X: Array, y: NDArray[np.generic], task: str, units: Grouping, size: int, seed: int
) -> Order:
    """Return the order that a search finds."""
    search, fixed = path_of(path, task, units.n_units), units.fixed_units
    size = min(max(size, RANKED), SCREENED[path], units.n_units)
    size = size if walk_of(search).grows else 1
    if len(fixed):
        firsts = np.unique(units.unit_of, return_index=True)[1]
        search.set_params(fixed_features=firsts[fixed].tolist())
    labels = None if units.plain else units.unit_of
    found = fit_search(search, X, y, seed, max(size, len(fixed)), labels)
    return Order(found.order_)


def interaction_order(X: Array, y: NDArray[np.generic], task: str, units: Grouping) -> Order:
    """Return the units of the strongest interactions, followed by the others."""
    criterion = PairInformation(n_interactions=N_INTERACTIONS, task=task).fit(X, y)
    strongest = [column for pair in criterion.interactions_ for column in pair[:2]]
    columns = np.concatenate([strongest, np.argsort(-criterion.scores_, kind="stable")])
    joined = np.concatenate([units.fixed_units, units.unit_of[columns.astype(np.intp)]])
    return Order(joined[np.sort(np.unique(joined, return_index=True)[1])])


def path_of(name: str, task: str, n_units: int) -> Selection:
    """Return the search that computes an order, for a number of units (columns or groups)."""
    search = _search(name, task)
    if n_units <= SCREENED[name]:
        return search
    return Then(Ranking(Correlation(task=task), n_features_to_select=SCREENED[name]), search)


def _search(name: str, task: str) -> Selection:
    if name == "cox":
        return Ranking(CoxScore())
    if name == "information":
        return Forward(JMI(adjusted=True, task=task))
    return RecursiveElimination(Importances(ForestImportances(N_TREES, task)), step=LEAVING)


def has_interaction(X: Array, y: NDArray[np.generic], task: str, seed: int) -> bool:
    """Return whether the strongest interaction passes its permutation test.

    Its two columns must also have more information together than each of them has alone.
    """
    for n_permutations in PERMUTATIONS:
        criterion = PairInformation(
            n_interactions=1, n_permutations=n_permutations, random_state=seed, task=task
        )
        pairs = criterion.fit(X, y).interactions_
        least = max(LEVEL, 1 / (1 + n_permutations))
        if not pairs or pairs[0].p_value is None or pairs[0].p_value > least:
            return False
        first, second, together, *_ = pairs[0]
        given_other = PairInformation(task=task).fit(X[:, [first, second]], y).scores_
        if given_other.max() > 2 * together:
            return False
    return True


def distinct_order(order: Order, X: Array, units: Grouping) -> Order:
    """Return an order in which near-duplicates of earlier units are moved to the end.

    A near-duplicate has an absolute correlation above 0.9 with an earlier unit that is not moved.
    In a group of columns, this holds for each column.
    """
    ranking, n_fixed = order.ranking, len(units.fixed)
    first = ranking[:COMPARED]
    close = correlated_units(X, units, first, first) > DUPLICATE
    stays = np.ones(len(ranking), dtype=bool)
    for position in range(n_fixed, len(first)):
        stays[position] = not close[position, :position][stays[:position]].any()
    return Order(np.concatenate([ranking[stays], ranking[~stays]]))


def correlated_units(X: Array, units: Grouping, one: Subset, other: Subset) -> Array:
    """Return the absolute correlation of each unit in ``one`` with each unit in ``other``.

    For a group, it is the correlation of its column that is least similar to the other unit. So two
    columns with an indicator of missing values each are not similar only because the same rows are
    missing. Constant columns are ignored.
    """
    if units.plain:
        return np.nan_to_num(column_correlations(X[:, one], X[:, other]))
    assert units.members is not None
    parts = [[units.members[unit] for unit in of] for of in (one, other)]
    starts = [np.cumsum([0, *(len(part) for part in of)])[:-1] for of in parts]
    columns = [np.concatenate(of) for of in parts]
    found = column_correlations(X[:, columns[0]], X[:, columns[1]])
    found = np.fmin.reduceat(np.fmax.reduceat(found, starts[1], axis=1), starts[0], axis=0)
    return np.nan_to_num(found)


def floating_order(
    X: Array, y: NDArray[np.generic], task: str, units: Grouping, size: int
) -> Order:
    """Return the best subsets that a floating search finds for a least-squares fit."""
    if task == "classification":
        target = (y[:, None] == np.unique(y)).astype(float)
    else:
        target = np.asarray(y, dtype=float)[:, None]
    ranking, subsets = floating_subsets(X, target, units, size, SCREENED["floating"])
    return Order(ranking, subsets)
