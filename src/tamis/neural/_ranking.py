"""From gates to an order of the columns."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis._arrays import Array, Subset, best_first, is_int
from tamis.contract import Choice, Chosen, Context, Criterion, Entries, Scores, Step, Trace
from tamis.exceptions import IncompatibleCriterion, InvalidParameter


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

    def __init__(self, n_features: int):
        self.n_features = n_features

    def check(self, search: Any, criterion: Criterion) -> None:
        if not (is_int(self.n_features) and self.n_features >= 1):
            raise InvalidParameter(
                f"PerClass needs a number of features of at least 1, not {self.n_features!r}."
            )
        if getattr(search, "scope", "global") == "global":
            raise IncompatibleCriterion(
                f"PerClass needs gates for each class, which {type(search).__name__} has only as "
                "GateSelector(scope='class'). Use that, or ask for a number of features."
            )

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        index = int(min(self.n_features, len(trace)) - 1)
        return Chosen(index, f"The {self.n_features} widest gates of each class, as asked.")


def widest(strength: Array) -> Array:
    """For each column the widest of its gates."""
    return np.max(strength, axis=0)


def by_width(strength: Array) -> Iterator[Entries]:
    """Columns added one by one, the widest gate first."""
    score = widest(strength)
    return _one_by_one(best_first(score), score)


def by_rank(strength: Array) -> Iterator[Entries]:
    """Columns added one by one, the first of every class, then the second of every class, ...

    Linear gates are scales of their own for each class, so that only their order compares.
    """
    score, rank = widest(strength), _ranks(strength).min(axis=0)
    wide = best_first(score)
    return _one_by_one(wide[np.argsort(rank[wide], kind="stable")], score)


def by_class(strength: Array) -> Iterator[Step]:
    """The next column of every class at each step, together."""
    score, rank = widest(strength), _ranks(strength).min(axis=0)
    for last in range(rank.max() + 1):
        fresh = np.flatnonzero(rank == last)
        yield Step(np.flatnonzero(rank <= last), scores=Scores(fresh, score[fresh]))


def _ranks(strength: Array) -> Subset:
    """Rank of each column in each row of gates, from 0 for the widest."""
    return np.array([np.argsort(best_first(row)) for row in strength])


def _one_by_one(order: Subset, score: Array) -> Iterator[Entries]:
    yield Entries(order, Scores(np.arange(len(order)), score))
