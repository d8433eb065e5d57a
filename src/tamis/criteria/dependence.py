"""Dependence of a subset on the target without densities: the Hilbert-Schmidt criterion."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from tamis._arrays import EMPTY, Array, Subset, class_codes
from tamis.contract import SubsetCriterion
from tamis.density.sums import PRECISIONS, check_precision
from tamis.exceptions import InvalidParameter, InvalidTarget

# Exponentials of one call below which numpy is done before compiled code is loaded.
COMPILED_FROM = 4_000_000
#: Kernels of the target: whether classes agree, a Gaussian (of a scaled target), a product.
EQUALITY, GAUSSIAN, PRODUCT = range(3)


class HSIC(SubsetCriterion):
    r"""Hilbert-Schmidt independence criterion between a subset and the target.

    With kernel matrices K of the columns and L of the target, both with their diagonals set to 0,
    the unbiased estimate is

    .. math:: \frac{1}{N(N-3)} \Big[ \mathrm{tr}(KL) + \frac{1'K1\; 1'L1}{(N-1)(N-2)}
              - \frac{2}{N-2}\, 1'KL1 \Big]

    and the biased one tr(KHLH)/N^2 with H = I - 11'/N. K is Gaussian, exp(-gamma \|x - x'\|^2); for
    classes L is 1 where they agree; for a real target it is Gaussian with the median rule, or
    linear. Both estimates are linear in K, so each pair of samples costs one exponential for each
    column priced, and L is centred once.

    Used backwards it is BAHSIC, forwards FOHSIC. Columns should be on one scale, as a search makes
    them. The empty subset is worth 0. It is not monotone.

    Parameters
    ----------
    gamma : float, "dimension" or "median", default="dimension"
        "dimension" is 1/(2 \|S\|), "median" 1/(2 median \|x - x'\|^2), of the columns in question:
        the width follows the subset. A number is used for every subset; fixed at what suits all
        columns it loses most of its power as columns leave.
    unbiased : bool, default=True
    target_kernel : {"gaussian", "linear"}, default="gaussian"
        Kernel of a real target. It can change the ranking much: the Gaussian one sees any
        dependence, the linear one gives the extremes of the target their weight.
    precision : {"double", "single"}, default="double"
        Of the exponentials of a large table, as in :class:`ParzenInformation`.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``; "auto" takes numbers of more than 20 distinct values as real.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), Feature selection via dependence maximization,
    JMLR 13.

    Examples
    --------
    >>> from tamis.search import Backward
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> Backward(HSIC(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    def __init__(
        self,
        *,
        gamma: float | str = "dimension",
        unbiased: bool = True,
        target_kernel: str = "gaussian",
        precision: str = "double",
        task: str = "auto",
    ):
        self.gamma = gamma
        self.unbiased = unbiased
        self.target_kernel = target_kernel
        self.precision = precision
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        self._check(len(X))
        self._target = _Target(y, self.task_, self.target_kernel, self.unbiased)
        self._X = X
        large = len(X) ** 2 * X.shape[1] >= COMPILED_FROM and self.gamma != "median"
        self._sums: _PlainSums | _CompiledSums
        if large:
            self._sums = _CompiledSums(X, self._target, PRECISIONS[self.precision])
        else:
            self._sums = _PlainSums(X, self._target)

    def _check(self, n_samples: int) -> None:
        check_precision("HSIC", self.precision)
        if isinstance(self.gamma, int | float | np.number):
            known = 0 < self.gamma < np.inf
        else:
            known = self.gamma in ("dimension", "median")
        if not known:
            raise InvalidParameter(
                "HSIC needs gamma as a positive number, 'dimension' or 'median', not "
                f"{self.gamma!r}."
            )
        if self.target_kernel not in ("gaussian", "linear"):
            raise InvalidParameter(
                f"HSIC needs target_kernel='gaussian' or 'linear', not {self.target_kernel!r}."
            )
        if self.unbiased and n_samples < 4:
            raise InvalidTarget(
                f"HSIC needs at least 4 samples for the unbiased estimate, not {n_samples}. "
                "Use unbiased=False."
            )

    def value(self, subset: Subset) -> float:
        if not len(subset):
            return 0.0
        return float(self._values(self.columns(subset), EMPTY, 0)[0])

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if not len(subset) or not len(candidates):
            return np.array([self.value(candidates[[i]]) for i in range(len(candidates))])
        return self._changes(self.columns(subset), self.columns(candidates), +1)

    def loss(self, subset: Subset) -> Array:
        if len(subset) < 2:
            return np.array([self.value(subset) for _ in subset])
        columns = self.columns(subset)
        return -self._changes(columns, columns, -1)

    def _changes(self, members: Subset, altered: Subset, sign: int) -> Array:
        """What each column changes; the value before is found in the same pass."""
        before, *after = self._values(members, altered, sign)
        return np.array(after) - before

    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        """Value of the members, and without (-1) or with (+1) each altered column."""
        sizes = len(members), len(members) + sign
        gammas = [self._gamma_for(size) for size in sizes]
        return self._sums(members, altered, sign, *gammas) + self._target.diagonal

    def _gamma_for(self, size: int) -> float:
        """The width for so many columns; nan for the median rule, which must see them."""
        if self.gamma == "median":
            return np.nan
        return 1 / (2 * size) if self.gamma == "dimension" else float(self.gamma)


class _Target:
    """The target's side of HSIC: weights W with HSIC = sum over pairs of 2 K W, plus a constant.

    Expanding either estimate, W_ij = scale (L_ij - offset_i - offset_j).
    """

    def __init__(self, y: NDArray[Any], kind: str, kernel: str, unbiased: bool):
        if kind == "classification":
            self.y, self.kind = class_codes(y)[1].astype(float), EQUALITY
        elif kernel == "linear":
            self.y, self.kind = y - y.mean(), PRODUCT
        else:
            gamma = median_gamma(pdist(_spread(y.astype(float))[:, None], "sqeuclidean"))
            self.y, self.kind = y * np.sqrt(gamma / np.log(2)), GAUSSIAN
        n, own = len(y), self._own()
        rows = self._row_sums() - (own if unbiased else 0)
        if unbiased:
            self.scale = 1 / (n * (n - 3))
            self.offset = rows / (n - 2) - rows.sum() / (2 * (n - 1) * (n - 2))
            self.diagonal = 0.0
        else:
            self.scale = 1 / n**2
            self.offset = rows / n - rows.sum() / (2 * n**2)
            self.diagonal = float(self.scale * (own - 2 * self.offset).sum())

    def rows(self, rows: slice) -> Array:
        """Kernel of some samples' targets with all."""
        if self.kind == EQUALITY:
            return (self.y[rows, None] == self.y).astype(float)
        if self.kind == GAUSSIAN:
            return np.exp2(-((self.y[rows, None] - self.y) ** 2))
        return np.outer(self.y[rows], self.y)

    def _own(self) -> Array:
        return self.y**2 if self.kind == PRODUCT else np.ones(len(self.y))

    def _row_sums(self) -> Array:
        blocks = [slice(i, i + 256) for i in range(0, len(self.y), 256)]
        return np.concatenate([self.rows(block).sum(axis=1) for block in blocks])


class _PlainSums:
    """All pairs at once: for small tables, and where each subset has a width of its own."""

    def __init__(self, X: Array, target: _Target):
        self._X = X
        first, second = np.triu_indices(len(X), 1)
        offsets = target.offset[first] + target.offset[second]
        self._weights = 2 * target.scale * (target.rows(slice(None))[first, second] - offsets)

    def __call__(
        self, members: Subset, altered: Subset, sign: int, before: float, after: float
    ) -> Array:
        """Sums for the members and for each altered column, with the gamma before and after."""
        distances = pdist(self._X[:, members], "sqeuclidean")
        moved = (distances + sign * pdist(self._X[:, [j]], "sqeuclidean") for j in altered)
        return np.array([self._sum(distances, before), *(self._sum(m, after) for m in moved)])

    def _sum(self, distances: Array, gamma: float) -> float:
        exponents = distances * -(median_gamma(distances) if np.isnan(gamma) else gamma)
        return float(np.exp(exponents, out=exponents) @ self._weights)


class _CompiledSums:
    """Rows of distances and weights made as needed: any number of samples."""

    def __init__(self, X: Array, target: _Target, dtype: Any):
        from tamis.density._rows import PAD

        self._target = target
        self._columns = np.zeros((X.shape[1], -(-len(X) // PAD) * PAD), dtype=dtype)
        self._columns[:, : len(X)] = X.T

    def __call__(
        self, members: Subset, altered: Subset, sign: int, before: float, after: float
    ) -> Array:
        from tamis.density._rows import pair_sums

        target = self._target
        columns = self._columns * float(np.sqrt(after / np.log(2)))  # the kernel as a power of 2
        kernels = (target.y, target.kind, target.offset)
        number = columns.dtype.type
        sums = pair_sums(columns, members, altered, number(sign), number(before / after), *kernels)
        return 2 * target.scale * sums


def _spread(y: Array, most: int = 4000) -> Array:
    """The values, or so many evenly spaced ones in their order: all pairs must fit into memory."""
    if len(y) <= most:
        return y
    return np.sort(y)[np.linspace(0, len(y) - 1, most).round().astype(np.intp)]


def median_gamma(distances: Array) -> float:
    """1/(2 median) of squared distances; where most are 0, of their mean; 1 where all are.

    >>> median_gamma(np.array([1.0, 2.0, 9.0])), median_gamma(np.array([0.0, 0.0, 3.0]))
    (0.25, 0.5)
    """
    if not len(distances):
        return 1.0
    middle = float(np.median(distances))
    # what is left of a difference of equal numbers is not a distance
    if middle <= 1e-12 * distances.max():
        middle = float(np.maximum(distances, 0).mean())
    return 1 / (2 * middle) if middle > 0 else 1.0
