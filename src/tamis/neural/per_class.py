"""Orders of columns by their gates, and the choice of the best columns of every class."""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis._arrays import Array, Subset, best_first
from tamis._checks import Constraints, check_parameters, integer
from tamis.contract import Choice, Chosen, Context, Entries, Scores, Step, Trace
from tamis.contract.criterion import Criterion
from tamis.exceptions import IncompatibleCriterion


class ClassFeature(NamedTuple):
    """A column as the gates of one class see it.

    Attributes
    ----------
    column : int
    name : str
    gate : float
    mean, spread : arrays of shape (n_classes,)
        Mean and standard deviation of the column in every class, in its own units.
    """

    column: int
    name: str
    gate: float
    mean: Array
    spread: Array


class PerClass(Choice):
    """The best columns of every class, together.

    For gates of each class: the union of the ``n_features`` widest of each class.

    Parameters
    ----------
    n_features : int
        How many of each class.

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

    def __init__(self, n_features: int):
        self.n_features = n_features

    def check(self, search: Any, criterion: Criterion) -> None:
        check_parameters(self)
        if getattr(search, "scope", "global") == "global":
            raise IncompatibleCriterion(
                f"PerClass needs gates for each class, which {type(search).__name__} has only as "
                "GateSelector(scope='class'). Use that, or ask for a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index = int(min(self.n_features, len(trace)) - 1)
        return Chosen(index, f"The {self.n_features} widest gates of each class, as asked.")


def by_width(gates: Array) -> Iterator[Entries]:
    """Add columns one by one, the widest gate first."""
    score = gates.max(axis=0)
    yield Entries(best_first(score), Scores(np.arange(len(score)), score))


def by_rank(gates: Array) -> Iterator[Entries]:
    """Add columns one by one, the first of every class, then the second of every class, ...

    Linear gates have a scale of their own for each class, so that only their order compares.
    """
    score, rank = gates.max(axis=0), _best_rank(gates)
    wide = best_first(score)
    order = wide[np.argsort(rank[wide], kind="stable")]
    yield Entries(order, Scores(np.arange(len(score)), score))


def by_class(gates: Array) -> Iterator[Step]:
    """Add the next column of every class at each step, together."""
    score, rank = gates.max(axis=0), _best_rank(gates)
    for last in range(rank.max() + 1):
        fresh = np.flatnonzero(rank == last)
        yield Step(np.flatnonzero(rank <= last), scores=Scores(fresh, score[fresh]))


def _best_rank(gates: Array) -> Subset:
    """Best rank of each column among the rows of gates, from 0 for the widest."""
    ranks: Subset = np.min([np.argsort(best_first(row)) for row in gates], axis=0)
    return ranks
