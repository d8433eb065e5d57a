"""Mutual information of a subset with the classes, from Parzen windows or reduced sets."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import entr, logsumexp

from tamis._arrays import Array, Subset, check_range, class_codes
from tamis._checks import NONE, Constraints, integer, one_of
from tamis._namespace import placed
from tamis._parallel import in_order, threads_for
from tamis._seeds import Seed, draw_seed, stream
from tamis.contract import BackwardCriterion, SubsetCriterion
from tamis.contract.criterion import Criterion
from tamis.criteria.kernel import SingleChanges
from tamis.density.parzen import (
    WIDTH,
    ExpectedClass,
    ObservedClass,
    PosteriorScore,
    best_width,
    width_cost,
)
from tamis.density.series.rows import class_changes
from tamis.density.series.table import Alteration, ScaledColumns
from tamis.density.simplex import reduced_set
from tamis.density.sums import (
    PRECISIONS,
    class_sums,
    class_sums_cost,
    columns_in_use,
    in_products,
    is_large,
)
from tamis.exceptions import InvalidParameter
from tamis.response.perturbations import Units

#: Largest number of terms in the series of a column for which matrix products are used. With more
#: terms, compiled loops are faster. The key is ``leave_one_out``. The limit is higher for True,
#: because the compiled loops then visit every pair of samples twice.
MOST_TERMS = {False: 7, True: 24}


@dataclass(eq=False, repr=False, kw_only=True)
class WindowCriterion(Criterion):
    """Base class of criteria that use Gaussian windows, with a width that likelihood can choose.

    Attributes
    ----------
    sigma_ : float
        Width of the windows, given or chosen.
    """

    sigma: float | str = "likelihood"
    random_state: Seed = 0
    task: str = "auto"

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    _constraints: ClassVar[Constraints] = {"sigma": WIDTH}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        check_range(type(self).__name__, X)
        self._X, self._codes = X, class_codes(y)[1]
        self._seed = draw_seed(self.random_state)
        self.tune(np.arange(self.n_units_))

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose the width again, by the held-out likelihood of the subset's columns."""
        if self.sigma == "likelihood":
            self.sigma_ = best_width(self._X[:, self.columns(subset)], seed=self._seed)
        else:
            self.sigma_ = float(self.sigma)
        return {"sigma": self.sigma_}

    def use(self, params: dict[str, Any]) -> None:
        self.sigma_ = params.get("sigma", self.sigma_)


@dataclass(eq=False, repr=False, kw_only=True)
class ParzenCriterion(SingleChanges, WindowCriterion, SubsetCriterion):
    """Base class of subset criteria computed from the posterior probabilities of Parzen windows."""

    leave_one_out: bool = False
    precision: str = "double"

    runs_on_device: ClassVar[bool] = True
    _score: ClassVar[type[PosteriorScore]]
    _constraints: ClassVar[Constraints] = {"precision": one_of(*PRECISIONS)}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self._counts = np.bincount(self._codes).astype(float)
        if self.leave_one_out and self._counts.min() < 2:
            raise InvalidParameter(
                f"{type(self).__name__} needs at least two samples of every class with "
                "leave_one_out=True, but one class has a single sample. Leave that class out, or "
                "use leave_one_out=False."
            )
        self._sums = class_sums(X, self._codes, self.precision)
        self._codes = self._codes[self._sums.order]
        self._ordered = placed(X[self._sums.order].astype(PRECISIONS[self.precision], copy=False))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        sums = class_sums_cost(n_samples, n_features, others=self.leave_one_out)
        return max(width_cost(n_samples), sums)

    def _values(self, change: Alteration) -> Array:
        gamma = 1 / (2 * self.sigma_**2)
        on_device = not isinstance(self._ordered, np.ndarray)
        if not is_large(self._X.shape) and not on_device:
            return self._from_all_sums(change, gamma)
        table, used = columns_in_use(self._ordered, change, gamma)
        together = in_products(table, used.altered, MOST_TERMS[self.leave_one_out])
        values = np.empty(len(together) + 1)
        if together.any() or on_device:
            base, changes = self._by_products(table, used._replace(altered=used.altered[together]))
            values[0], values[1:][together] = base, base + changes
        if not together.all() or not (len(together) or on_device):
            others = change._replace(altered=change.altered[~together])
            rest = self._from_all_sums(others, gamma)
            values[0], values[1:][~together] = rest[0], rest[1:]
        return values

    def _by_products(self, table: ScaledColumns, change: Alteration) -> tuple[float, Array]:
        """Return the value of the members, and its change for each altered column.

        The columns have a short series, which is computed by matrix products.
        """
        n, others = len(self._codes), self.leave_one_out
        bounds = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.intp)
        score = self._score(self._codes, self._counts, others, table.Z)
        base, changes = class_changes(table, change, bounds, score, others=others)
        return base / n + self._target_entropy, changes / n

    def _from_all_sums(self, change: Alteration, gamma: float) -> Array:
        if not self.leave_one_out:
            # P_k p(z|k) is the sum over class k up to a constant, which cancels
            sums = self._sums.sums(change, gamma)
            with np.errstate(divide="ignore"):  # the sum of a distant class underflows to 0
                return self._from_logs(np.log(sums / sums.sum(axis=1, keepdims=True)))
        logs = self._sums.log_sums_of_others(change, gamma)
        own = self._codes == np.arange(len(self._counts))[:, None]
        logs += np.log(self._counts[:, None] / (self._counts[:, None] - own))
        return self._from_logs(logs - logsumexp(logs, axis=1, keepdims=True))

    @abstractmethod
    def _from_logs(self, posterior: Array) -> Array:
        """Return the value of each subset.

        ``posterior`` has the log posterior probabilities, of shape (subsets, classes, samples).
        """

    @property
    def _target_entropy(self) -> float:
        return float(entr(self._counts / self._counts.sum()).sum())


class ParzenInformation(ParzenCriterion):
    r"""Mutual information of a subset with the classes, estimated with Parzen windows (MI-PW).

    .. math:: I(z; y) \approx \frac1N \sum_i \log \frac{p(z_i | y_i)}{\sum_k P_k\, p(z_i | k)},
              \qquad p(z | k) = \frac{1}{N_k} \sum_{i \in k} \phi_\sigma(z - z_i)

    with Gaussian windows of the same width for all classes and columns. Columns should be on the
    same scale; searches standardise them by default. A backward search finds interactions of any
    number of columns, without cutting them into bins. A step of an elimination computes one
    exponential for each pair of samples and each column.

    Unless ``leave_one_out`` is set, a sample contributes to its own density. The estimate is then
    too large, but by nearly the same amount for all subsets of the same size. The empty subset has
    the value 0.

    Parameters
    ----------
    sigma : float or "likelihood", default="likelihood"
        Width of the window. "likelihood" chooses the width with the largest likelihood of held-out
        samples in five folds. The candidates are 2^-3 to 2^3, in steps of the square root of 2. The
        width is chosen once for all columns; ``RecursiveElimination(..., retune=1)`` chooses it
        again after each removal.
    leave_one_out : bool, default=False
        Whether a sample is left out of its own density. This is less biased, but does not always
        rank better, and the value may rise when a column is removed.
    precision : {"double", "single"}, default="double"
        Precision of the exponentials for a large table. Single precision takes half the time.
        Values are then accurate to about 1e-6, so only nearly tied columns may swap ranks.
    random_state : int, default=0
        Seed of the folds.
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers with more than 20 distinct values, because they look like a
        regression target. "classification" treats each distinct value as a class.

    References
    ----------
    Yang and Ong (2012), An effective feature selection method via mutual information estimation,
    IEEE Trans. Systems, Man, and Cybernetics B 42.

    Examples
    --------
    Two columns that determine the class only together, and an irrelevant one:

    >>> from tamis.search import Backward
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> Backward(ParzenInformation(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    _score = ObservedClass

    def _from_logs(self, posterior: Array) -> Array:
        # -mean log P(y_i) is the entropy of the classes
        own = posterior[:, self._codes, np.arange(len(self._codes))]
        return own.mean(axis=1) + self._target_entropy


class KwakInformation(ParzenCriterion):
    r"""Mutual information from Parzen windows, averaged over the posterior instead of the labels.

    .. math:: I(z; y) \approx H(y) + \frac1N \sum_i \sum_k p(k | z_i) \log p(k | z_i)

    It is meant for a forward search. Unlike :class:`ParzenInformation` it measures how confident
    the posterior is, not whether it is right. The empty subset has the value 0.

    Parameters
    ----------
    sigma, leave_one_out, precision, random_state, task
        As in :class:`ParzenInformation`.

    References
    ----------
    Kwak and Choi (2002), Input feature selection by mutual information based on Parzen window,
    IEEE Trans. PAMI 24.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> Forward(KwakInformation(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    _score = ExpectedClass

    def _from_logs(self, posterior: Array) -> Array:
        return self._target_entropy - entr(np.exp(posterior)).sum(axis=1).mean(axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class ParzenDivergence(ParzenCriterion):
    r"""Average symmetric Kullback-Leibler divergence between classes, from Parzen windows.

    :class:`~tamis.criteria.Divergence` uses it for ``density="parzen"``. At each sample, the
    density of the sample's class (without the sample itself) is compared with the densities of the
    other classes.
    """

    leave_one_out: bool = True
    task: str = "classification"

    def _from_logs(self, posterior: Array) -> Array:
        priors = self._counts / self._counts.sum()
        densities = posterior - np.log(priors)[:, None]
        own = densities[:, self._codes, np.arange(len(self._codes))]
        others = np.einsum("k,skn->sn", priors, densities)
        return 2 * (own - others).mean(axis=1)


# Number of samples per block. With a few hundred centres, the terms of a block fit into the L2
# cache.
_ROWS = 128


@dataclass(eq=False, repr=False, kw_only=True)
class ReducedParzenInformation(WindowCriterion, BackwardCriterion):
    r"""Information lost when a column is perturbed, from reduced-set densities (MI-RSDE).

    The class densities are Parzen windows on few, weighted samples, fitted once for all columns of
    the subset. The information is estimated as in :class:`ParzenInformation`. The loss of a column
    is the decrease of the information when its values are replaced by others from its marginal
    distribution. In expectation this is equivalent to a density without the column.

    Parameters
    ----------
    by : {"marginal", "permutation", "removal"}, default="marginal"
        How a column is perturbed. "marginal" gives every sample each of ``n_values`` quantiles in
        turn (deterministic), "permutation" shuffles the column, and "removal" fits new densities
        without the column. The columns of a group are perturbed together; "marginal" then uses
        ``n_values`` random rows of the group instead of quantiles.
    sigma : float or "likelihood", default="likelihood"
        As in :class:`ParzenInformation`.
    n_repeats : int, default=1
        Number of permutations.
    n_values : int or None, default=16
        Number of quantiles of a column with ``by="marginal"``; None uses every value.
    random_state : int, None or Generator, default=0
        Seed of the permutations and of the folds that choose the width. The permutations do not
        depend on the order of rows and columns.
    task
        As in :class:`ParzenInformation`.

    Attributes
    ----------
    sigma_ : float
        Width of the windows, given or chosen.

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

    by: str = "marginal"
    n_repeats: int = 1
    n_values: int | None = 16

    _constraints: ClassVar[Constraints] = {
        "by": one_of("marginal", "permutation", "removal"),
        "n_repeats": integer(1),
        "n_values": integer(2) | NONE,
    }

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self._log_priors = np.log(np.bincount(self._codes) / len(X))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        pairs = float(n_samples) ** 2
        # approximate size of the reduced set for normal columns; it grows with their number
        terms = n_samples * min(n_samples, 8 * 1.15 ** min(n_features, 200))
        return 6 * pairs + 20 * terms + width_cost(n_samples)

    def loss(self, subset: Subset) -> Array:
        grouped = Units.of(self.columns, subset)
        Z = self._X[:, grouped.columns]
        losses = np.zeros(len(subset))
        varies = Z.min(axis=0) < Z.max(axis=0)  # a constant column has no information
        rank = np.cumsum(varies) - 1
        members = [grouped.positions(index) for index in range(len(subset))]
        units = [rank[positions[varies[positions]]] for positions in members]
        scored = np.array([len(unit) > 0 for unit in units], dtype=bool)
        if scored.any():
            units = [unit for unit in units if len(unit)]
            losses[scored] = self._losses(units, Z[:, varies])
        return losses

    def _losses(self, units: list[Subset], Z: Array) -> Array:
        """Return the information lost when each unit is perturbed. ``Z`` has no constant column."""
        mixture = _Mixture(Z, self._codes, self._log_priors, self.sigma_)
        if self.by == "removal":
            without = self._of_units(lambda u: self._information(np.delete(Z, u, axis=1)), units)
        else:
            both = list(zip(units, self._values(units, Z), strict=True))
            without = self._of_units(lambda pair: mixture.information(*pair), both)
        return mixture.information() - np.array(without)

    def _of_units(self, function: Callable[[Any], float], units: list[Any]) -> list[float]:
        """Map a function over units in several threads."""
        size = float(len(self._X)) ** 2 * len(units)  # there are at most len(X) windows
        return list(in_order(function, units, threads_for(size), blas=True))

    def _information(self, Z: Array) -> float:
        """Return the mutual information, computed from densities fitted to the columns of ``Z``."""
        if not Z.shape[1]:
            return 0.0
        return _Mixture(Z, self._codes, self._log_priors, self.sigma_).information()

    def _values(self, units: list[Subset], Z: Array) -> list[Array]:
        """Return the replacement values of each unit, of shape (columns, repeats, samples)."""
        # rows are sorted by norm and class before they are permuted, so that the result does not
        # depend on the order of rows or columns
        squares = np.sort(Z**2, axis=1)
        rows = np.lexsort((self._codes, squares.sum(axis=1)))
        draws, n_rows = stream(self._seed, self.by, len(units)), len(rows)
        if self.by == "permutation":  # in a repeat, all units are shuffled in the same way
            rank = np.argsort(rows)
            shuffles = [rows[draws.permutation(n_rows)[rank]] for _ in range(self.n_repeats)]
            return [Z.T[unit][:, np.array(shuffles)] for unit in units]
        drawn = rows[draws.permutation(n_rows)[: self.n_values]]
        return [self._points(Z.T[unit], drawn) for unit in units]

    def _points(self, columns: Array, drawn: Subset) -> Array:
        """Return the replacement values of a unit: quantiles of a column, or rows of a group.

        Every sample gets the same values. The shape is (columns, repeats, samples).
        """
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
    """Reduced-set densities of the classes, and the mutual information computed from them."""

    def __init__(self, Z: Array, codes: NDArray[np.intp], log_priors: Array, sigma: float):
        self._Z, self._codes, self._log_priors = Z, codes, log_priors
        self._gamma = 1 / (2 * sigma**2)
        centres, logs, counts = [], [], []
        for k in range(len(log_priors)):
            members = Z[codes == k]
            chosen, weights = reduced_set(members, sigma)
            centres.append(members[chosen])
            logs.append(np.log(weights))
            counts.append(len(chosen))
        self._centres, self._log_weights = np.concatenate(centres), np.concatenate(logs)
        self._counts = np.array(counts)
        self._starts = np.cumsum(self._counts) - self._counts
        # log of weight times window, without the constant, which cancels
        self._terms = self._log_weights - self._gamma * cdist(Z, self._centres, "sqeuclidean")

    def information(self, unit: Subset | None = None, values: Array | None = None) -> float:
        """Return the mutual information of the columns and the classes.

        If ``values`` replace the columns of a unit, return the mean over their repeats.
        """
        if unit is None or values is None:
            return float(np.mean(self._log_ratio(self._terms, self._codes)))
        n_samples, n_repeats, total = len(self._Z), values.shape[1], 0.0
        for first in range(0, n_samples, _ROWS):
            rows = slice(first, first + _ROWS)
            base = self._shift_terms(self._terms[rows], unit, self._Z[rows, unit].T, +1)
            for repeat in range(n_repeats):
                terms = self._shift_terms(base, unit, values[:, repeat, rows], -1)
                total += self._log_ratio(terms, self._codes[rows]).sum()
        return float(total / (n_samples * n_repeats))

    def _shift_terms(self, terms: Array, unit: Subset, values: Array, sign: int) -> Array:
        """Add the squared distances between a unit's values and the centres, or remove them.

        ``sign`` is -1 to add the distances, which lowers the exponents, and +1 to remove them.
        """
        for column, own in zip(unit, values, strict=True):
            terms = terms + sign * self._gamma * (own[:, None] - self._centres[:, column]) ** 2
        return terms

    def _log_ratio(self, terms: Array, codes: NDArray[np.intp]) -> Array:
        """Return log p(z|y) - log sum_k P_k p(z|k) for each row z of class y, without underflow."""
        most = np.maximum.reduceat(terms, self._starts, axis=1)
        shifted = np.exp(terms - np.repeat(most, self._counts, axis=1))
        logs = np.log(np.add.reduceat(shifted, self._starts, axis=1)) + most
        joint = logs + self._log_priors
        top = joint.max(axis=1)
        together = top + np.log(np.exp(joint - top[:, None]).sum(axis=1))
        return logs[np.arange(len(codes)), codes] - together
