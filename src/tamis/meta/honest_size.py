"""Choice of the number of columns that minimises the error on held-out rows."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from tamis._arrays import Array, Subset
from tamis._checks import Constraints, integer, number, one_of
from tamis._seeds import seed_of
from tamis.contract import Selection
from tamis.contract.choice import best_of
from tamis.exceptions import InvalidTarget
from tamis.meta.inner_search import path_size, search_cost
from tamis.meta.invariant_selection import check_environments
from tamis.meta.repeats import InRounds, Verdict, readable_rounds
from tamis.meta.search_repeats import Rounds, check_part, task_of
from tamis.validation.held_out import check_predicts, held_out_losses
from tamis.validation.resamples import folds_of

#: Numbers of columns that are compared. The list stops at 40 because longer searches would take too
#: long. Large sizes are further apart because neighbouring large sizes have almost the same error.
SIZES = (0, 1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40)


@dataclass(eq=False, repr=False)
class HonestSize(Rounds, InRounds):
    """Select the smallest number of columns whose held-out error is about as low as the best.

    The search runs again in each fold. An estimator is trained on the first 1, 2, 3, 4, 5, 7, 10
    (and so on) columns that the search selects, and predicts the held-out rows. Size 0 is the
    baseline, which uses no columns. The selected size is the smallest one whose mean squared loss
    (Brier score for classes) is within ``n_errors`` standard errors of the lowest loss. If this is
    the baseline, no column is selected. Otherwise the search runs on all rows with this size.

    The loss is the squared loss rather than the error rate. With the error rate, the best of a
    dozen sizes often beats the baseline by chance.

    Parameters
    ----------
    search : Search or any other selection
        The search to run in each fold.
    estimator : estimator or None, default=None
        The model that predicts the target. None means ridge regression. For classification, a
        regressor is trained on class indicators. The model must be able to use the columns that the
        search finds: a linear model, for example, cannot use an interaction.
    n_errors : float, default=1.0
        Number of standard errors by which a loss may exceed the lowest loss.
    n_folds : int, default=5
        Number of folds.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether ``y`` contains classes or numbers.
    random_state : int, generator or None, default=None
        Seed of the folds, and of the search.
    n_jobs : int or None, default=None
        Number of folds in parallel. The result does not depend on it.

    Attributes
    ----------
    sizes_ : array of int
        The numbers of columns that were compared.
    losses_, errors_ : array of float
        Mean squared loss at each size, and its standard error. The loss of the selected size is
        slightly optimistic, because the size was chosen to make it low.
    fold_lists_ : dict of int to list of arrays
        The units (columns or groups) that the search selected in each fold, for each number.
    environments_ : array
        The labels of the environments, if ``fit`` got ``environments``.
    environment_losses_ : array of shape (n_environments, n_sizes)
        Mean squared loss in each environment, of models that were trained on all others.

    Notes
    -----
    ``fit`` accepts ``groups``, whose rows stay in the same fold, and ``environments`` (hospitals,
    years, sites), one label per row. Environments do not change the selected size. For each
    environment, the loss of models that are trained on all other environments is reported.

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
    row_labels: ClassVar[tuple[str, ...]] = ("groups", "environments")
    instead_if_censored: ClassVar[str] = "Use Probes(...) or StabilitySelection(...)."

    _constraints: ClassVar[Constraints] = {
        "n_errors": number(least=0),
        "n_folds": integer(2),
        "task": one_of("auto", "classification", "regression"),
    }

    estimator: BaseEstimator | None = None
    _: KW_ONLY
    n_errors: float = 1.0
    n_folds: int = 5
    task: str = "auto"

    def _check_target(self, y: NDArray[Any] | None) -> None:
        super()._check_target(y)
        if y is None:
            raise InvalidTarget(
                "HonestSize needs a target to compare predictions with. Give y, or ask the search "
                "for a number of features."
            )
        check_predicts("HonestSize", self.estimator, y, task_of(self, y))

    def _n_rounds(self) -> int:
        given = self._labels.get("environments")
        return self.n_folds + (0 if given is None else len(given[0]))

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        if self._labels["environments"] is not None:
            check_environments("HonestSize", self._labels["environments"])
        super()._check_memory(X, y)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the folds and the search on all rows need."""
        folds = super().cost(n_samples, n_features)
        last = search_cost(self.search, n_samples, n_features)
        return None if folds is None or last is None else max(folds, last)

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the search on the training rows of a fold needs."""
        n = n_samples - n_samples // self.n_folds
        held = search_cost(self.search, n, n_features)
        return held and held + 16.0 * n * n_features

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return the test rows of a fold or an environment, and the losses and units per size."""
        assert y is not None
        task, n_units, rows = task_of(self, y), self._units.n_units, np.arange(len(y))
        label: list[Any] = []
        if index < self.n_folds:
            groups = self._row_codes("groups")
            train, test = folds_of(y, rows, self.n_folds, seed, task, groups)[index]
        else:
            names, codes = self._labels["environments"] or ((), rows)
            inside = codes == index - self.n_folds
            train, test, label = rows[~inside], rows[inside], [names[index - self.n_folds].item()]
        check_part("HonestSize", y, train)
        size = min(path_size(self.search, n_units), sizes_of(n_units)[-1])
        search = self._fit_search(X[train], y[train], seed_of(seed, "search", index), size)
        lists = [first_units(search, size) for size in sizes_of(n_units)]
        losses = []
        for units in lists:
            columns = search.units_.columns(units)
            found = held_out_losses(self.estimator, X[:, columns], y, train, test, task)
            losses.append(found.tolist())
        return [test.tolist(), losses, [units.tolist() for units in lists], *label]

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """Run the search on all rows with the selected size, and return its order of units."""
        assert y is not None
        with readable_rounds(self):
            self._read(found, self._units.n_units)
        n = int(self.sizes_[self._smallest()])
        if n == 0:
            return []
        search = self._fit_search(X, y, seed_of(seed, "all"), n)
        selected = search.unit_support_[search.order_]
        return [*search.order_[selected].tolist(), *search.order_[~selected].tolist()]

    def _read(self, found: list[list[Any]], n_units: int) -> None:
        self.sizes_ = np.array(sizes_of(n_units))
        folds, others = found[: self.n_folds], found[self.n_folds :]
        if others:
            self.environments_ = np.array([label for *_, label in others])
            self.environment_losses_ = np.array([np.mean(one, axis=1) for _, one, *_ in others])
        self.fold_lists_ = {
            size: [np.array(lists[index], dtype=np.intp) for _, _, lists in folds]
            for index, size in enumerate(self.sizes_.tolist())
        }
        n_rows = sum(len(rows) for rows, *_ in folds)
        losses = np.empty((n_rows, len(self.sizes_)))
        for rows, of_sizes, _ in folds:
            losses[np.array(rows)] = np.array(of_sizes).T
        self.losses_ = losses.mean(axis=0)
        unit = losses.max(initial=0.0) or 1.0  # so that squares of losses do not overflow
        self.errors_ = (losses / unit).std(axis=0, ddof=1) / np.sqrt(n_rows) * unit

    def _smallest(self) -> int:
        """Return the index of the smallest size whose loss is close enough to the lowest."""
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
        best, chosen = int(self.losses_.argmin()), self._smallest()
        size, baseline = int(self.sizes_[chosen]), self.losses_[0]
        lowest = f"{self.losses_[best]:.3g} ± {self.errors_[best]:.2g}"
        if size == 0:
            return Verdict(
                0,
                f"the lowest squared loss on held-out rows, {lowest} with "
                f"{self._counted(self.sizes_[best])}, is not clearly below the baseline, "
                f"{baseline:.3g}.",
            )
        return Verdict(
            size,
            f"{self._counted(size)}: the smallest number whose squared loss on held-out rows, "
            f"{self.losses_[chosen]:.3g}, is within {self.n_errors:g} standard error(s) of the "
            f"lowest, {lowest} with {self._counted(self.sizes_[best])}; the baseline without "
            f"columns has {baseline:.3g}.{self._elsewhere(chosen)}",
        )

    def _elsewhere(self, chosen: int) -> str:
        """Return a sentence about the losses in environments without training rows."""
        if not hasattr(self, "environment_losses_"):
            return ""
        losses = self.environment_losses_[:, chosen]
        worst = losses.argmax()
        return (
            f" In an environment without training rows, the loss is {losses.mean():.3g} on "
            f"average, and at most {losses[worst]:.3g} (in {self.environments_[worst]})."
        )


def sizes_of(n_features: int) -> list[int]:
    """Return the sizes that are compared for a table with this number of columns."""
    return [size for size in SIZES if size < n_features] + (
        [n_features] if n_features <= SIZES[-1] else []
    )


def first_units(search: Selection, size: int) -> Subset:
    """Return the units of a fitted search at this size.

    They are the best subset of this size or, if the search path has none, the first units of the
    order.
    """
    steps = np.flatnonzero(search.trace_.sizes == size)
    if search.nested or size == 0 or not len(steps):
        return np.sort(search.order_[:size])
    return search.trace_[best_of(search.trace_, steps)].subset
