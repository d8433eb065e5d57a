"""How many columns, by rows that took no part in choosing them."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset, target_kind
from tamis._checks import Constraints, integer, number, one_of
from tamis._seeds import seed_of
from tamis.contract import Selection
from tamis.contract.choice import best_of
from tamis.exceptions import InvalidTarget
from tamis.meta.inner_search import walk_cost, walk_of, whole_walk
from tamis.meta.repeats import InRounds, Verdict, readable_rounds
from tamis.meta.search_repeats import Rounds, check_part
from tamis.validation.held_out import check_predicts, held_out_losses
from tamis.validation.resamples import folds_of

#: Numbers of columns that are tried: a walk beyond is long, and errors hardly differ between
#: neighbours among the large ones.
SIZES = (0, 1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40)


class HonestSize(Rounds, InRounds):
    """The number of columns that predicts unseen rows best, or hardly worse, and those columns.

    The search runs again in each of some folds; an estimator is trained on its first 1, 2, 3, 4, 5,
    7, 10, ... columns and answers for the rows left out, beside a model without columns. Kept is
    the smallest number whose mean squared loss (for classes that of the probabilities, the Brier
    score) is within ``n_errors`` standard errors, over rows, of the least; with that number the
    search runs once more on all rows. No column is kept where none beats none.

    Losses of 0 and 1 cannot say "nothing": the best of a dozen sizes wins by luck.

    Parameters
    ----------
    search : Search or any other selection
    estimator : estimator or None, default=None
        None is a ridge regression. One that only regresses is trained on indicators of the classes.
        It must be able to see what the search finds: a linear one finds nothing in columns that
        matter only together.
    n_errors : float, default=1.0
    n_folds : int, default=5
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None
        Folds at the same time; the result does not depend on it.

    Attributes
    ----------
    sizes_ : array of int
    losses_, errors_ : array of float
        Mean squared loss at each size, and its standard error. Of the size that is kept the loss
        is a little too small: it was chosen by it.

    Examples
    --------
    >>> from tamis.choice import HonestSize
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=200)
    >>> HonestSize(Ranking(Correlation()), random_state=0).fit(X, y).get_support(indices=True)
    array([4, 9])
    """

    counts_places: ClassVar[bool] = True

    _constraints: ClassVar[Constraints] = {
        "n_errors": number(least=0),
        "n_folds": integer(2),
        "task": one_of("auto", "classification", "regression"),
    }

    def __init__(
        self,
        search: Selection,
        estimator: Any = None,
        *,
        n_errors: float = 1.0,
        n_folds: int = 5,
        task: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.search = search
        self.estimator = estimator
        self.n_errors = n_errors
        self.n_folds = n_folds
        self.task = task
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_target(self, y: NDArray[Any] | None) -> None:
        super()._check_target(y)
        if y is None:
            raise InvalidTarget(
                "HonestSize compares predictions with a target, and there is none. Give y, or ask "
                "the search for a number of features."
            )
        if y.dtype.names is not None:
            raise InvalidTarget(
                "HonestSize compares predictions with a target of classes or numbers, and y is "
                "censored (event and time). Use Probes(...) or StabilitySelection(...)."
            )
        check_predicts("HonestSize", self.estimator, y, self._task(y))

    def _n_rounds(self) -> int:
        return self.n_folds

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Of the folds, and of the search on all rows that follows."""
        folds = super().cost(n_samples, n_features)
        last = walk_cost(self.search, n_samples, n_features)
        return None if folds is None or last is None else max(folds, last)

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """The search on a fold's rows."""
        n = n_samples - n_samples // self.n_folds
        held = walk_cost(self.search, n, n_features)
        return held and held + 16.0 * n * n_features

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Rows of one fold, and their losses at every size."""
        assert y is not None
        task, n_units = self._task(y), self._units.n_units
        train, test = folds_of(y, np.arange(len(y)), self.n_folds, seed, task)[index]
        check_part("HonestSize", y, train)
        size = honest_walk(self.search, n_units)
        walked = self._fitted(X[train], y[train], seed_of(seed, "search", index), size)
        losses = []
        for size in sizes_of(n_units):
            columns = walked.units_.columns(first_units(walked, size))
            found = held_out_losses(self.estimator, X[:, columns], y, train, test, task)
            losses.append(found.tolist())
        return [test.tolist(), losses]

    def _task(self, y: NDArray[Any]) -> str:
        if self.task != "auto":
            return self.task
        criterion = getattr(walk_of(self.search), "criterion", None)
        asked = getattr(criterion, "task", "auto")
        only = tuple(getattr(criterion, "targets", ()))
        if asked == "auto" and len(only) == 1:
            asked = only[0]
        return target_kind(y) if asked == "auto" else str(asked)

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """The order in which the search takes the columns of all rows."""
        assert y is not None
        with readable_rounds(self):
            self._read(found, self._units.n_units)
        n = int(self.sizes_[self._smallest()])
        if n == 0:
            return []
        search = self._fitted(X, y, seed_of(seed, "all"), n)
        kept = search.unit_support_[search.order_]
        return [*search.order_[kept].tolist(), *search.order_[~kept].tolist()]

    def _read(self, found: list[list[Any]], n_units: int) -> None:
        self.sizes_ = np.array(sizes_of(n_units))
        n_rows = sum(len(rows) for rows, _ in found)
        losses = np.empty((n_rows, len(self.sizes_)))
        for rows, of_sizes in found:
            losses[np.array(rows)] = np.array(of_sizes).T
        self.losses_ = losses.mean(axis=0)
        unit = losses.max(initial=0.0) or 1.0  # squares of squares are soon out of reach
        self.errors_ = (losses / unit).std(axis=0, ddof=1) / np.sqrt(n_rows) * unit

    def _smallest(self) -> int:
        """Index of the smallest size that is hardly worse than the best."""
        best = int(self.losses_.argmin())
        close = self.losses_ <= self.losses_[best] + self.n_errors * self.errors_[best]
        return int(np.flatnonzero(close)[0])

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self._read(found, n_units)
        scores = np.zeros(n_units)
        if rest:
            scores[np.array(rest)] = np.arange(len(rest), 0, -1.0)
        return scores

    def _verdict(self, scores: Array) -> Verdict:
        best, kept = int(self.losses_.argmin()), self._smallest()
        size, nothing = int(self.sizes_[kept]), self.losses_[0]
        least = f"{self.losses_[best]:.3g} ± {self.errors_[best]:.2g}"
        if size == 0:
            return Verdict(
                0,
                f"the least squared loss on rows left out, {least} with "
                f"{self._counted(self.sizes_[best])}, is not clearly below that without columns, "
                f"{nothing:.3g}.",
            )
        return Verdict(
            size,
            f"{self._counted(size)}: the smallest number whose squared loss on rows left out, "
            f"{self.losses_[kept]:.3g}, is within {self.n_errors:g} standard error(s) of the "
            f"least, {least} with {self._counted(self.sizes_[best])}; without columns it is "
            f"{nothing:.3g}.",
        )


def sizes_of(n_features: int) -> list[int]:
    """Sizes that are tried on a table of so many columns."""
    return [size for size in SIZES if size < n_features] + (
        [n_features] if n_features <= SIZES[-1] else []
    )


def honest_walk(search: Any, n_features: int) -> int:
    """The size to which a search walks so that all sizes that are tried can be read."""
    return min(whole_walk(search, n_features), sizes_of(n_features)[-1])


def first_units(search: Selection, size: int) -> Subset:
    """The units of a fitted search of this size: of its walk where it has them."""
    if search.nested or size == 0:
        return np.sort(search.order_[:size])
    steps = np.flatnonzero(search.trace_.sizes == size)
    if not len(steps):
        return np.sort(search.order_[:size])
    return search.trace_[best_of(search.trace_, steps)].subset
