"""Information of a subset with the classes from reduced-set densities, one fit for all columns."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tamis._arrays import Array, Subset, check_range, class_codes
from tamis._checks import NONE, Constraints, integer, one_of
from tamis._parallel import in_order, threads_for
from tamis._seeds import draw_seed, stream
from tamis.contract import BackwardCriterion
from tamis.density.parzen import WIDTH, best_width, width_cost
from tamis.density.reduced_sets import reduced_set
from tamis.response.perturbations import Units

# Samples at a time: with some hundred centres their terms stay in the second cache.
_ROWS = 128


class ReducedParzenInformation(BackwardCriterion):
    r"""What perturbing each column costs the information, by reduced-set densities (MI-RSDE).

    The class densities are Parzen windows on few, weighted samples, found once for all columns of
    the subset. The information is then estimated as in :class:`ParzenInformation`, and a column is
    scored by what is lost of it when the column's values are replaced by others drawn from its
    marginal distribution: in expectation this is as good as a density without the column.

    Parameters
    ----------
    by : {"marginal", "permutation", "removal"}, default="marginal"
        How a column is perturbed: by giving every sample each of ``n_values`` quantiles in turn (no
        chance in it), by shuffling its values over all samples, or by finding new densities
        without the column, one fit for each. The columns of a group are perturbed together, and
        ``n_values`` of their rows, drawn once, take the place of quantiles.
    sigma : float or "likelihood", default="likelihood"
        As in :class:`ParzenInformation`.
    n_repeats : int, default=1
        Number of permutations.
    n_values : int or None, default=16
        Number of quantiles of a column with ``by="marginal"``; None is every value.
    random_state : int, None or Generator, default=0
        Seed of the permutations, which do not depend on the order of rows and columns, and of the
        folds that choose the width.
    task
        As in :class:`ParzenInformation`.

    Attributes
    ----------
    sigma_ : float
        The width in use.

    References
    ----------
    Girolami and He (2003), Probability density estimation from optimally condensed data samples,
    IEEE Trans. PAMI 25.

    Yang and Ong (2012), An effective feature selection method via mutual information estimation,
    IEEE Trans. Systems, Man, and Cybernetics B 42.

    Examples
    --------
    >>> from tamis.search import RecursiveElimination
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> search = RecursiveElimination(ReducedParzenInformation(), n_features_to_select=2)
    >>> search.fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    _constraints: ClassVar[Constraints] = {
        "by": one_of("marginal", "permutation", "removal"),
        "sigma": WIDTH,
        "n_repeats": integer(1),
        "n_values": integer(2) | NONE,
    }

    def __init__(
        self,
        *,
        by: str = "marginal",
        sigma: float | str = "likelihood",
        n_repeats: int = 1,
        n_values: int | None = 16,
        random_state: Any = 0,
        task: str = "auto",
    ):
        self.by = by
        self.sigma = sigma
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        check_range("ReducedParzenInformation", X)
        self._seed = draw_seed(self.random_state)
        self._X = X
        self._codes = class_codes(y)[1]
        self._log_priors = np.log(np.bincount(self._codes) / len(X))
        self.use(self.tune(np.arange(self.n_units_)))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        pairs = float(n_samples) ** 2
        # of normal columns so many samples are kept, until windows hardly overlap and all are
        terms = n_samples * min(n_samples, 8 * 1.15 ** min(n_features, 200))
        return 6 * pairs + 20 * terms + width_cost(n_samples)

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose the width anew by the held-out likelihood of the columns left."""
        if self.sigma == "likelihood":
            self.sigma_ = best_width(self._X[:, self.columns(subset)], seed=self._seed)
        else:
            self.sigma_ = float(self.sigma)
        return {"sigma": self.sigma_}

    def use(self, params: dict[str, Any]) -> None:
        self.sigma_ = params.get("sigma", self.sigma_)

    def loss(self, subset: Subset) -> Array:
        grouped = Units.of(self.columns, subset)
        Z = self._X[:, grouped.columns]
        losses = np.zeros(len(subset))
        varies = Z.min(axis=0) < Z.max(axis=0)  # a constant column tells nothing, whatever the rest
        rank = np.cumsum(varies) - 1
        members = [grouped.positions(index) for index in range(len(subset))]
        units = [rank[positions[varies[positions]]] for positions in members]
        told = np.array([len(unit) > 0 for unit in units], dtype=bool)
        if told.any():
            units = [unit for unit in units if len(unit)]
            losses[told] = self._losses(units, Z[:, varies])
        return losses

    def _losses(self, units: list[Subset], Z: Array) -> Array:
        """Information lost with the columns of each unit, none of them constant."""
        mixture = _Mixture(Z, self._codes, self._log_priors, self.sigma_)
        if self.by == "removal":
            without = self._of_units(lambda u: self._information(np.delete(Z, u, axis=1)), units)
        else:
            both = list(zip(units, self._values(units, Z), strict=True))
            without = self._of_units(lambda pair: mixture.information(*pair), both)
        return mixture.information() - np.array(without)

    def _of_units(self, function: Callable[[Any], float], units: list[Any]) -> list[float]:
        """What is left without each unit, by threads of our own."""
        size = float(len(self._X)) ** 2 * len(units)  # at most as many windows as samples
        return list(in_order(function, units, threads_for(size), blas=True))

    def _information(self, Z: Array) -> float:
        """Information from densities found for these columns."""
        if not Z.shape[1]:
            return 0.0
        return _Mixture(Z, self._codes, self._log_priors, self.sigma_).information()

    def _values(self, units: list[Subset], Z: Array) -> list[Array]:
        """For each unit what replaces its values: arrays of (column, repeat, sample)."""
        # draws count the rows by their norms and classes, so that neither the order of the rows
        # nor that of the columns matters
        squares = np.sort(Z**2, axis=1)
        rows = np.lexsort((self._codes, squares.sum(axis=1)))
        draws, n_rows = stream(self._seed, self.by, len(units)), len(rows)
        if self.by == "permutation":  # one shuffle for all units of a repeat
            rank = np.argsort(rows)
            shuffles = [rows[draws.permutation(n_rows)[rank]] for _ in range(self.n_repeats)]
            return [Z.T[unit][:, np.array(shuffles)] for unit in units]
        drawn = rows[draws.permutation(n_rows)[: self.n_values]]
        return [self._points(Z.T[unit], drawn) for unit in units]

    def _points(self, columns: Array, drawn: Subset) -> Array:
        """Values that every sample gets: quantiles of a column, whole rows of a group."""
        n_samples = columns.shape[1]
        if self.n_values is None or self.n_values >= n_samples:
            grid = columns if len(columns) > 1 else np.sort(columns, axis=1)
        elif len(columns) > 1:
            grid = columns[:, drawn]
        else:
            shares = (np.arange(self.n_values) + 0.5) / self.n_values
            grid = np.quantile(columns, shares, axis=1).T
        return np.broadcast_to(grid[:, :, None], (*grid.shape, n_samples))


class _Mixture:
    """Reduced-set densities of the classes, and the information they give about them."""

    def __init__(self, Z: Array, codes: NDArray[np.intp], log_priors: Array, sigma: float):
        self._Z, self._codes, self._log_priors = Z, codes, log_priors
        self._gamma = 1 / (2 * sigma**2)
        centres, logs, counts = [], [], []
        for k in range(len(log_priors)):
            members = Z[codes == k]
            kept, weights = reduced_set(members, sigma)
            centres.append(members[kept])
            logs.append(np.log(weights))
            counts.append(len(kept))
        self._centres, self._log_weights = np.concatenate(centres), np.concatenate(logs)
        self._counts = np.array(counts)
        self._starts = np.cumsum(self._counts) - self._counts
        # log of weight times window, without the constant, which cancels
        self._terms = self._log_weights - self._gamma * cdist(Z, self._centres, "sqeuclidean")

    def information(self, unit: Subset | None = None, values: Array | None = None) -> float:
        """Information, of samples whose columns have been replaced by each repeat of values."""
        if unit is None or values is None:
            return float(np.mean(self._log_ratio(self._terms, self._codes)))
        n_samples, n_repeats, total = len(self._Z), values.shape[1], 0.0
        for first in range(0, n_samples, _ROWS):
            rows = slice(first, first + _ROWS)
            base = self._moved(self._terms[rows], unit, self._Z[rows, unit].T, +1)
            for repeat in range(n_repeats):
                terms = self._moved(base, unit, values[:, repeat, rows], -1)
                total += self._log_ratio(terms, self._codes[rows]).sum()
        return float(total / (n_samples * n_repeats))

    def _moved(self, terms: Array, unit: Subset, values: Array, sign: int) -> Array:
        """Terms with (-1) or without (+1) the distances of these values in the unit's columns."""
        for column, own in zip(unit, values, strict=True):
            terms = terms + sign * self._gamma * (own[:, None] - self._centres[:, column]) ** 2
        return terms

    def _log_ratio(self, terms: Array, codes: NDArray[np.intp]) -> Array:
        """log p(z|y) - log sum_k P_k p(z|k) of each row, safe where all terms underflow."""
        most = np.maximum.reduceat(terms, self._starts, axis=1)
        shifted = np.exp(terms - np.repeat(most, self._counts, axis=1))
        logs = np.log(np.add.reduceat(shifted, self._starts, axis=1)) + most
        joint = logs + self._log_priors
        top = joint.max(axis=1)
        together = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
        return logs[np.arange(len(codes)), codes] - together
