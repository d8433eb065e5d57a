"""Information of a subset with the classes, from Parzen windows or reduced sets."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import entr, logsumexp

from tamis._arrays import Array, Mask, Subset, check_range, class_codes
from tamis._checks import NONE, Constraints, integer, one_of
from tamis._namespace import placed
from tamis._parallel import in_order, threads_for
from tamis._seeds import draw_seed, stream
from tamis.contract import BackwardCriterion, SubsetCriterion
from tamis.criteria.kernel import SingleChanges
from tamis.density.parzen import (
    WIDTH,
    ExpectedClass,
    ObservedClass,
    PosteriorScore,
    best_width,
    width_cost,
)
from tamis.density.series import ClassChanges, class_changes
from tamis.density.simplex import reduced_set
from tamis.density.sums import (
    PRECISIONS,
    ClassSums,
    ColumnsInUse,
    class_sums,
    class_sums_cost,
    columns_in_use,
    is_large,
)
from tamis.exceptions import InvalidParameter
from tamis.response.perturbations import Units

#: Terms of the series of a column up to which products are used, by whether a sample has no part in
#: its own density. Compiled loops make each pair once where it has one, and where it has none look
#: at every pair of samples twice.
MOST_TERMS = {False: 7, True: 24}


class ParzenCriterion(SingleChanges, SubsetCriterion):
    """Value of a subset from the posterior probabilities that Parzen windows give.

    Attributes
    ----------
    sigma_ : float
        The width in use.
    """

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    runs_on_device: ClassVar[bool] = True
    _score: ClassVar[type[PosteriorScore]]
    _constraints: ClassVar[Constraints] = {"sigma": WIDTH, "precision": one_of(*PRECISIONS)}

    def __init__(
        self,
        *,
        sigma: float | str = "likelihood",
        leave_one_out: bool = False,
        precision: str = "double",
        random_state: Any = 0,
        task: str = "auto",
    ):
        self.sigma = sigma
        self.leave_one_out = leave_one_out
        self.precision = precision
        self.random_state = random_state
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        name = type(self).__name__
        self._seed = draw_seed(self.random_state)
        check_range(name, X)
        codes = class_codes(y)[1]
        self._counts = np.bincount(codes).astype(float)
        if self.leave_one_out and self._counts.min() < 2:
            raise InvalidParameter(
                f"{name} needs at least two samples of every class with leave_one_out=True, but "
                "one class has a single sample. Leave that class out, or use leave_one_out=False."
            )
        self._X = X
        self._sums: ClassSums = class_sums(X, codes, self.precision)
        self._codes = codes[self._sums.order]
        self._ordered = placed(X[self._sums.order].astype(PRECISIONS[self.precision], copy=False))
        self.use(self.tune(np.arange(self.n_units_)))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        sums = class_sums_cost(n_samples, n_features, others=self.leave_one_out)
        return max(width_cost(n_samples), sums)

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose the width anew by the held-out likelihood of the columns left."""
        if self.sigma != "likelihood":
            return self._use(float(self.sigma))
        return self._use(best_width(self._X[:, self.columns(subset)], seed=self._seed))

    def use(self, params: dict[str, Any]) -> None:
        if "sigma" in params:
            self._use(params["sigma"])

    def _use(self, sigma: float) -> dict[str, Any]:
        self.sigma_ = sigma
        return {"sigma": sigma}

    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        gamma = 1 / (2 * self.sigma_**2)
        elsewhere = not isinstance(self._ordered, np.ndarray)
        if not is_large(self._X.shape) and not elsewhere:
            return self._from_all_sums(members, altered, sign, gamma)
        used = columns_in_use(self._ordered, members, altered, gamma)
        together = used.together(MOST_TERMS[self.leave_one_out])
        values = np.empty(len(altered) + 1)
        if together.any() or elsewhere:
            both = self._by_products(used, together, -sign)
            values[0], values[1:][together] = both.base, both.base + both.changes
        if not together.all() or not (len(altered) or elsewhere):
            rest = self._from_all_sums(members, altered[~together], sign, gamma)
            values[0], values[1:][~together] = rest[0], rest[1:]
        return values

    def _by_products(self, used: ColumnsInUse, together: Mask, way: int) -> ClassChanges:
        """Value of the members, and what columns of few terms change, all at once."""
        n, others = len(self._codes), self.leave_one_out
        bounds = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.intp)
        score = self._score(self._codes, self._counts, others, used.table.Z)
        which = used.members, used.altered[together], way
        found = class_changes(used.table, bounds, *which, score, others=others)
        return ClassChanges(found.base / n + self._target_entropy, found.changes / n)

    def _from_all_sums(self, members: Subset, altered: Subset, sign: int, gamma: float) -> Array:
        if not self.leave_one_out:
            # P_k p(z|k) is the sum over class k up to a constant, which cancels
            sums = self._sums.sums(members, altered, sign, gamma)
            with np.errstate(divide="ignore"):  # a class that is too far has none
                return self._from_logs(np.log(sums / sums.sum(axis=1, keepdims=True)))
        logs = self._sums.log_sums_of_others(members, altered, sign, gamma)
        own = self._codes == np.arange(len(self._counts))[:, None]
        logs += np.log(self._counts[:, None] / (self._counts[:, None] - own))
        return self._from_logs(logs - logsumexp(logs, axis=1, keepdims=True))

    @abstractmethod
    def _from_logs(self, posterior: Array) -> Array:
        """Values from the logarithms of the posterior probabilities: (subset, class, sample)."""

    @property
    def _target_entropy(self) -> float:
        return float(entr(self._counts / self._counts.sum()).sum())


class ParzenInformation(ParzenCriterion):
    r"""Mutual information of a subset with the classes by Parzen windows (MI-PW).

    .. math:: I(z; y) \approx \frac1N \sum_i \log \frac{p(z_i | y_i)}{\sum_k P_k\, p(z_i | k)},
              \qquad p(z | k) = \frac{1}{N_k} \sum_{i \in k} \phi_\sigma(z - z_i)

    with Gaussian windows of one width for all classes and columns, so columns should be on one
    scale, as a search makes them. Used backwards it sees what columns tell together: no
    discretisation, any number of interacting columns. A step of an elimination costs one
    exponential for each pair of samples and each column.

    A sample counts for its own density unless ``leave_one_out``; the estimate is then too great,
    but by nearly the same for every subset of one size. The empty subset is worth 0.

    Parameters
    ----------
    sigma : float or "likelihood", default="likelihood"
        Width of the window. "likelihood" takes that of 2^-3 to 2^3, in steps of the square root of
        2, under which samples left out in five folds are most likely, once, for all columns;
        ``RecursiveElimination(..., retune=1)`` chooses it anew after each removal.
    leave_one_out : bool, default=False
        Whether the density at a sample is that of the others. It is less biased, not always better
        at ranking, and may rise when a column leaves.
    precision : {"double", "single"}, default="double"
        Of the exponentials of a large table. Single precision takes half the time; values are then
        right to about 1e-6, so only columns that are nearly equal may change places.
    random_state : int, default=0
        Seed of the folds.
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers of more than 20 distinct values, which a regression target has;
        "classification" takes each as a class.

    References
    ----------
    Yang and Ong (2012), An effective feature selection method via mutual information estimation,
    IEEE Trans. Systems, Man, and Cybernetics B 42.

    Examples
    --------
    Two columns that tell the class only together, and one that tells nothing:

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
    r"""Mutual information by Parzen windows with the expected instead of the observed class.

    .. math:: I(z; y) \approx H(y) + \frac1N \sum_i \sum_k p(k | z_i) \log p(k | z_i)

    Meant for a forward search. Unlike :class:`ParzenInformation` it does not ask whether the
    posterior is right, only whether it is sure. The empty subset is worth 0.

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


class ParzenDivergence(ParzenCriterion):
    r"""Average symmetric Kullback-Leibler divergence of the classes by Parzen windows.

    What :class:`~tamis.criteria.Divergence` of ``density="parzen"`` asks: at each sample the
    density of its class, without itself, is compared with those of the others.
    """

    def __init__(self, *, sigma: float | str = "likelihood", random_state: Any = 0):
        super().__init__(
            sigma=sigma, leave_one_out=True, random_state=random_state, task="classification"
        )

    def _from_logs(self, posterior: Array) -> Array:
        priors = self._counts / self._counts.sum()
        densities = posterior - np.log(priors)[:, None]
        own = densities[:, self._codes, np.arange(len(self._codes))]
        others = np.einsum("k,skn->sn", priors, densities)
        return 2 * (own - others).mean(axis=1)


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
