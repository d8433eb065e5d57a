"""The two-class machine as a path: variables, bounds, near duplicates, outputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.exceptions import PathTooLarge
from tamis.svm.kernels import Gram
from tamis.svm.path.follow import SolutionPath, follow
from tamis.svm.path.programme import QuadraticProgramme

MAX_SAMPLES = 12_000  # an n x n kernel matrix of about 1 GB
SAME = 1e-14  # squared distance, relative to the kernel, of points that are taken as one


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
    kappa: float

    def weights(self, lam: float) -> tuple[Array, float]:
        """Weights ``s x`` of the samples and intercept, both times lambda; exact at any lambda."""
        w, b = self.solution.weights(lam)
        return w[self.group] * self.share, b

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Derivatives of the weights and of the intercept by lambda."""
        w, b = self.solution.slopes(lam)
        return w[self.group] * self.share, b

    def outputs(self, rows: Array) -> list[tuple[Array, Array]]:
        """Lambdas and h = lambda f (rows x points) of every segment, from centred kernel rows."""
        if len(self.share) == len(self.solution.upper):
            return self.solution.outputs(rows)
        order = np.argsort(self.group, kind="stable")
        firsts = np.searchsorted(self.group[order], np.arange(len(self.solution.upper)))
        return self.solution.outputs(np.add.reduceat((rows * self.share)[:, order], firsts, axis=1))

    @property
    def bounds(self) -> Array:
        """Upper bounds of the samples."""
        return self.share * self.solution.upper[self.group]

    @property
    def band(self) -> float:
        """Half-width of what counts as zero: the label is +1 where h >= -band."""
        return 1e-10 * self.kappa


def merge(K: Array, sign: Array) -> NDArray[np.int64]:
    """Number the distinct points: samples of one class with (nearly) the same kernel are one."""
    own = np.diagonal(K)
    kappa = float(own.max())
    group = np.arange(len(sign))
    # candidates by a cheap key first: equal points have equal norms
    order = np.argsort(own, kind="stable")
    close = np.diff(own[order]) <= 3e-7 * kappa
    starts = np.flatnonzero(close & ~np.concatenate([[False], close[:-1]]))
    for start in starts:
        end = start + 1
        while end < len(order) and close[end - 1]:
            end += 1
        run = order[start:end]
        D = own[run][:, None] + own[run] - 2 * K[np.ix_(run, run)]
        same = (SAME * kappa >= D) & (sign[run][:, None] == sign[run])
        for i in range(len(run)):
            if group[run[i]] == run[i]:
                twins = run[same[i] & (group[run] == run)]
                group[twins] = run[i]
    if (group == np.arange(len(group))).all():
        return group
    return np.unique(group, return_inverse=True)[1]


def binary_path(
    gram: Gram,
    sign: Array,
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> BinaryPath:
    """Path for labels ``sign`` with box ``[0, bounds]``."""
    K = gram.K
    group = merge(K, sign)
    n = int(group.max()) + 1
    upper = np.bincount(group, bounds, n).astype(np.float64)
    chosen = sign
    if n < len(sign):
        representative = np.unique(group, return_index=True)[1]
        K = np.ascontiguousarray(K[np.ix_(representative, representative)])
        chosen = sign[representative]
    corner = _vertex(chosen, upper)
    programme = QuadraticProgramme(K, np.arange(n), chosen, upper, np.ones(n))
    found = follow(programme, corner, lambda_range, bracketed)
    kappa = max(float(np.diagonal(K).max()), 1e-300)
    return BinaryPath(found, group, bounds / upper[group], sign, kappa)


def _vertex(sign: Array, upper: Array) -> Array:
    """A feasible corner: both classes filled up to the total of the smaller one."""
    x = np.zeros_like(upper)
    total = min(upper[sign > 0].sum(), upper[sign < 0].sum())
    for side in (1.0, -1.0):
        mine = np.flatnonzero(sign == side)
        before = np.concatenate([[0.0], np.cumsum(upper[mine])[:-1]])
        x[mine] = np.clip(total - before, 0.0, upper[mine])
    return x
