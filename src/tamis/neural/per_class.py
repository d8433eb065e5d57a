"""Rankings of columns by their gates, and a rule that selects the best columns of each class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis._arrays import Array, Subset, best_first
from tamis._checks import Constraints, check_parameters, integer
from tamis.contract import Choice, Chosen, Context, Entries, Scores, Step, Trace
from tamis.contract.criterion import Criterion
from tamis.exceptions import IncompatibleCriterion


class ClassFeature(NamedTuple):
    """Column with its gate for one class, from :meth:`GateSelector.features_for`.

    Attributes
    ----------
    column : int
        Index of the column.
    name : str
        Name of the column.
    gate : float
        Gate of the column for the class.
    mean, spread : arrays of shape (n_classes,)
        Mean and standard deviation of the column in each class, on the original scale.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.neural import GateSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> gates = GateSelector(
    ...     n_features_to_select=2, scope="class", mu=0.05, lam=0.1, random_state=0
    ... )
    >>> best = gates.fit(X, y).features_for(0)[0]
    >>> best.column, best.mean.round(1)  # the mean in each class
    (2, array([1.5, 4.3, 5.6]))
    """

    column: int
    name: str
    gate: float
    mean: Array
    spread: Array


@dataclass(eq=False, repr=False)
class PerClass(Choice):
    """Choice that selects the columns with the widest gates of each class.

    Parameters
    ----------
    n_features : int
        Number of columns to select for each class. :class:`GateSelector` then needs
        ``scope="class"`` or ``scope="one-vs-rest"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.neural import GateSelector
    >>> X, y = load_iris(return_X_y=True)
    >>> gates = GateSelector(n_features_to_select=PerClass(1), scope="class", mu=0.05, lam=0.1,
    ...                      random_state=0)
    >>> gates.fit(X, y).get_support(indices=True)
    array([1, 2])
    """

    _constraints: ClassVar[Constraints] = {"n_features": integer(1)}

    n_features: int

    def check(self, search: Any, criterion: Criterion) -> None:
        check_parameters(self)
        if getattr(search, "scope", "global") == "global":
            raise IncompatibleCriterion(
                f"PerClass needs gates for each class, but this {type(search).__name__} has none. "
                "Use GateSelector(scope='class'), or ask for a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index = int(min(self.n_features, len(trace)) - 1)
        return Chosen(index, f"The {self.n_features} widest gates of each class, as asked.")


def by_width(gates: Array) -> Iterator[Entries]:
    """Add columns one by one, in decreasing order of their gates."""
    score = gates.max(axis=0)
    yield Entries(best_first(score), Scores(np.arange(len(score)), score))


def by_rank(gates: Array) -> Iterator[Entries]:
    """Add columns one by one, in the order of their best rank among all classes.

    The best column of each class comes first, then the second best of each class, and so on. Linear
    gates of different classes have different scales, so only their ranks are comparable.
    """
    score, rank = gates.max(axis=0), _best_rank(gates)
    wide = best_first(score)
    order = wide[np.argsort(rank[wide], kind="stable")]
    yield Entries(order, Scores(np.arange(len(score)), score))


def by_class(gates: Array) -> Iterator[Step]:
    """Add the next best column of every class in each step."""
    score, rank = gates.max(axis=0), _best_rank(gates)
    for last in range(rank.max() + 1):
        fresh = np.flatnonzero(rank == last)
        yield Step(np.flatnonzero(rank <= last), scores=Scores(fresh, score[fresh]))


def _best_rank(gates: Array) -> Subset:
    """Return each column's best rank among all classes. Rank 0 is the widest gate."""
    ranks: Subset = np.min([np.argsort(best_first(row)) for row in gates], axis=0)
    return ranks
