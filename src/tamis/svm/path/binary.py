"""The two-class machine as a path: variables, bounds, near duplicates, outputs."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.exceptions import PathTooLarge
from tamis.svm.kernels import EPS, Gram
from tamis.svm.path.follow import WANTED, Block, SolutionPath, follow
from tamis.svm.path.programme import QuadraticProgramme

MAX_SAMPLES = 12_000  # an n x n kernel matrix of about 1 GB
# Squared distance, in units of the kernel, of points that may be taken as one: the kernel itself
# tells no nearer ones apart, for it is known to about as many digits.
SAME = 1e-14
# Difference of squared norms of such points, at most twice a norm times the root of that.
NEAR_NORMS = 3e-7


def check_size(name: str, n_samples: int) -> None:
    """Refuse what cannot be held, and say what to do instead."""
    if n_samples > MAX_SAMPLES:
        raise PathTooLarge(
            f"{name} keeps the kernel matrix and follows every sample, which is possible up to "
            f"{MAX_SAMPLES} samples; got {n_samples}. Use GridC(step=1.0, refine=3), a grid over C "
            "with refinement around its best point."
        )


@dataclass(frozen=True)
class BinaryPath:
    """Path of a machine with labels +1 and -1."""

    solution: SolutionPath
    group: NDArray[np.int64]  # variable of each sample
    share: Array  # of the variable's bound that is the sample's
    sign: Array

    def weights(self, lam: float) -> tuple[Array, float]:
        """Weights ``s x`` of the samples and intercept, both times lambda; exact at any lambda."""
        w, b = self.solution.weights(lam)
        return w[self.group] * self.share, b

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Derivatives of the weights and of the intercept by lambda."""
        w, b = self.solution.slopes(lam)
        return w[self.group] * self.share, b

    def band(self, lam: float, rows: Array) -> Array:
        """What of the outputs at these kernel rows counts as 0."""
        return self.solution.band(lam, np.abs(rows).max(axis=1))

    def outputs(self, rows: Array) -> list[Block]:
        """Lambdas and h = lambda f (rows x points) of every segment, from centred kernel rows."""
        n_variables = len(self.solution.programme.upper)
        if len(self.share) == n_variables:
            return self.solution.outputs(rows)
        order = np.argsort(self.group, kind="stable")
        firsts = np.searchsorted(self.group[order], np.arange(n_variables))
        return self.solution.outputs(np.add.reduceat((rows * self.share)[:, order], firsts, axis=1))

    @property
    def bounds(self) -> Array:
        """Upper bounds of the samples."""
        return self.share * self.solution.programme.upper[self.group]


def merge(K: Array, sign: Array, tolerance: float) -> tuple[NDArray[np.int64], float]:
    """Number the distinct points: samples of one class with (nearly) the same kernel are one.

    Returns the numbers, and how far the kernel rows of samples that are taken as one are apart.
    """
    own = np.diagonal(K)
    group = np.arange(len(sign))
    # candidates by a cheap key first: equal points have equal norms
    order = np.argsort(own, kind="stable")
    close = np.diff(own[order]) <= NEAR_NORMS
    starts = np.flatnonzero(close & ~np.concatenate([[False], close[:-1]]))
    for start in starts:
        end = start + 1
        while end < len(order) and close[end - 1]:
            end += 1
        run = order[start:end]
        D = own[run][:, None] + own[run] - 2 * K[np.ix_(run, run)]
        same = (SAME >= D) & (sign[run][:, None] == sign[run])
        for i in range(len(run)):
            if group[run[i]] == run[i] and same[i].sum() > 1:
                twins = run[same[i] & (group[run] == run)]
                apart = np.abs(K[twins] - K[run[i]]).max(axis=1)
                group[twins[apart <= tolerance]] = run[i]
    blur = float(np.abs(K - K[group]).max()) if (group != np.arange(len(group))).any() else 0.0
    return np.unique(group, return_inverse=True)[1], blur


def binary_path(
    gram: Gram,
    sign: Array,
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> BinaryPath:
    """Path for labels ``sign`` with box ``[0, bounds]``.

    Copies are one variable; near copies become one only where the path fails with them apart.
    """
    tried: list[BinaryPath] = []
    for tolerance in (4 * gram.noise.max() + 16 * EPS, np.inf):
        group, blur = merge(gram.K, sign, tolerance)
        if tried and group.max() == tried[0].group.max():
            break
        tried.append(_merged_path(gram, sign, bounds, lambda_range, bracketed, group, blur))
        found = tried[-1].solution
        if found.missed <= WANTED and found.reached <= lambda_range[0]:
            break
    return min(tried, key=lambda path: (path.solution.reached, path.solution.violation))


def _merged_path(
    gram: Gram,
    sign: Array,
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool,
    group: NDArray[np.int64],
    blur: float,
) -> BinaryPath:
    """Path with one variable for each group of samples."""
    K, noise, n = gram.K, gram.noise, int(group.max()) + 1
    upper = np.bincount(group, bounds, n).astype(np.float64)
    chosen = sign
    if n < len(sign):
        representative = np.unique(group, return_index=True)[1]
        K = np.ascontiguousarray(K[np.ix_(representative, representative)])
        chosen, noise = sign[representative], noise[representative]
    corner = _vertex(chosen, upper)
    programme = QuadraticProgramme(K, np.arange(n), chosen, upper, np.ones(n), noise)
    programme = replace(programme, even=bool((bounds == bounds[0]).all()))
    found = follow(programme, corner, lambda_range, bracketed, gram.unit, blur)
    return BinaryPath(found, group, bounds / upper[group], sign)


def _vertex(sign: Array, upper: Array) -> Array:
    """A feasible corner: both classes filled up to the total of the smaller one."""
    x = np.zeros_like(upper)
    total = min(upper[sign > 0].sum(), upper[sign < 0].sum())
    for side in (1.0, -1.0):
        mine = np.flatnonzero(sign == side)
        before = np.concatenate([[0.0], np.cumsum(upper[mine])[:-1]])
        x[mine] = np.clip(total - before, 0.0, upper[mine])
    return x
