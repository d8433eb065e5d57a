"""The paths of a classifier: one for each pair of classes, near duplicates merged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.bounds import Bracketed, bound_errors
from tamis.svm.curves.steps import (
    Lines,
    OrderPairs,
    StepCounts,
    label_steps,
    order_steps,
    vote_steps,
)
from tamis.svm.inputs import FARTHEST_OUTPUT, within
from tamis.svm.kernels import EPS, Gram, Kernel
from tamis.svm.machine import class_pairs
from tamis.svm.path.follow import WANTED, Block, SolutionPath, follow
from tamis.svm.path.programme import QuadraticProgramme

# Squared distance, in units of the kernel, of points that may be taken as one: the kernel itself
# tells no nearer ones apart, for it is known to about as many digits.
SAME = 1e-14
# Difference of squared norms of such points, at most twice a norm times the root of that.
NEAR_NORMS = 3e-7


@dataclass(frozen=True)
class BinaryPath:
    """Path of a classifier with labels +1 and -1."""

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


@dataclass(frozen=True)
class PairwisePaths:
    """Paths one against one on a training set, by pairs of classes."""

    n_classes: int
    n_samples: int
    grams: list[Gram]
    paths: list[BinaryPath]

    def outputs(self, X: Array, lam: float) -> Array:
        """h = lambda f of every path, exactly 0 where it is no more than rounding."""
        columns = []
        for gram, path in zip(self.grams, self.paths, strict=True):
            (w, b), rows = path.weights(lam), gram.rows(X)
            with np.errstate(over="ignore", invalid="ignore"):  # of rows far off
                h = within(rows @ w + b, FARTHEST_OUTPUT)
                zero = path.solution.band(lam, np.abs(rows).max(axis=1))
                columns.append(np.where(np.abs(h) <= zero, 0.0, h))
        return np.column_stack(columns)

    def dual_coef(self, lam: float) -> Array:
        """Coefficients ``y alpha`` of all samples, one row for each path."""
        coef = np.zeros((len(self.paths), self.n_samples))
        for own, gram, path in zip(coef, self.grams, self.paths, strict=True):
            own[gram.members] = path.weights(lam)[0] / lam
        return coef

    def intercepts(self, lam: float) -> Array:
        """Intercepts that go with the coefficients and the kernel as it is."""
        found = []
        for gram, path in zip(self.grams, self.paths, strict=True):
            w, own = path.weights(lam)
            shift = gram.means @ w
            if gram.kernel.name == "linear":  # its rows are taken from the mean of the samples
                shift += gram.origin @ (w @ gram.X)
            found.append((own - shift) / lam)
        return np.array(found)

    def steps(
        self,
        X: Array,
        target: NDArray[np.int64],
        scoring: object,
        ways: tuple[int, ...] = (0,),
        own: Array | None = None,
        weight: Array | None = None,
    ) -> list[StepCounts]:
        """Correct predictions along the path: as they are (0), at best (1) and at worst (-1).

        ``own`` is the kernel of the points with themselves, where it is precomputed, ``weight``
        what each point counts.
        """
        count = StepCounter(target, scoring, self.n_classes, weight, X)
        rows = [gram.rows(X) for gram in self.grams]
        blocks = [path.outputs(part) for path, part in zip(self.paths, rows, strict=True)]
        if not any(ways):
            return [count.nominal([[(b.lam, b.h, b.band) for b in part] for part in blocks])]
        bracketed = []
        for path, gram, part, known in zip(self.paths, self.grams, rows, blocks, strict=True):
            bounds = bound_errors(path.solution, known, gram, X, part, own)
            # an order is of two points: there any zone may matter
            every = np.ones(len(bounds.zone), bool)
            bracketed.append(bounds.bracketed(every if scoring == "roc_auc" else bounds.unsure()))
        # an output counts as 0 only as far as its sign is not certain
        lines = [[(m.lam, m.h, np.minimum(m.band, m.error))] for m in bracketed]
        return [count.bracket(bracketed, way) if way else count.nominal(lines) for way in ways]


@dataclass(frozen=True)
class StepCounter:
    """Counts of correct predictions for the points of a validation set."""

    target: NDArray[np.int64]
    scoring: object
    n_classes: int
    weight: Array | None
    X: Array

    def nominal(self, machines: list[list[tuple[Array, Array, Array]]]) -> StepCounts:
        """Correct predictions by lambda, outputs and what of them counts as 0, block by block."""
        if self.scoring == "roc_auc":
            lines = [(lam, h) for lam, h, _ in machines[0]]
            return self._ordered(lines, [band for _, _, band in machines[0]])
        moved = [[(lam, h + band) for lam, h, band in blocks] for blocks in machines]
        if len(moved) == 1:
            return label_steps(moved[0], self.target, self.weight)
        return vote_steps(moved, self.target, self.n_classes, self.weight)

    def bracket(self, machines: list[Bracketed], way: int) -> StepCounts:
        """Correct predictions at best (1) or at worst (-1)."""
        if len(machines) > 1:
            lines, errors = [[(m.lam, m.h)] for m in machines], [m.error for m in machines]
            return vote_steps(lines, self.target, self.n_classes, self.weight, way, errors)
        (machine,) = machines
        # outputs moved to the benefit (1) or the detriment (-1) of the true labels
        moved = machine.h + way * np.where(self.target == 1, 1.0, -1.0) * machine.error
        if self.scoring == "roc_auc":
            return self._ordered([(machine.lam, moved)], [np.zeros_like(moved)])
        return label_steps([(machine.lam, moved)], self.target, self.weight)

    def _ordered(self, lines: Lines, ties: list[Array]) -> StepCounts:
        return order_steps(lines, ties, OrderPairs.of(self.X, self.target, self.weight))


def pairwise_paths(
    kernel: Kernel,
    X: Array,
    target: NDArray[np.int64],
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> PairwisePaths:
    """Follow the path of every pair of classes; samples with a bound of 0 do not take part."""
    n_classes, grams, paths = int(target.max()) + 1, [], []
    for i, j in class_pairs(n_classes):
        members = np.flatnonzero(((target == i) | (target == j)) & (bounds > 0))
        sign = np.where(target[members] == j, 1.0, -1.0)
        grams.append(Gram(kernel, X, members))
        paths.append(binary_path(grams[-1], sign, bounds[members], lambda_range, bracketed))
    return PairwisePaths(n_classes, len(X), grams, paths)


def binary_path(
    gram: Gram,
    sign: Array,
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool,
) -> BinaryPath:
    """Follow the path for labels ``sign`` with box ``[0, bounds]``.

    Copies are one variable; near copies become one only where the path fails with them apart.
    """
    tried: list[BinaryPath] = []
    for tolerance in (4 * gram.noise.max() + 16 * EPS, np.inf):
        group, blur = merge_points(gram.K, sign, tolerance)
        if tried and group.max() == tried[0].group.max():
            break
        first = np.unique(group, return_index=True)[1]
        n, chosen = len(first), sign[first]
        upper = np.bincount(group, bounds, n).astype(np.float64)
        programme = QuadraticProgramme(
            gram.K if n == len(sign) else np.ascontiguousarray(gram.K[np.ix_(first, first)]),
            np.arange(n), chosen, upper, np.ones(n), gram.noise[first],
            unit=gram.unit, blur=blur, even=bool((bounds == bounds[0]).all()), bracketed=bracketed,
        )  # fmt: skip
        found = follow(programme, _vertex(chosen, upper), lambda_range)
        tried.append(BinaryPath(found, group, bounds / upper[group], sign))
        if found.missed <= WANTED and found.reached <= lambda_range[0]:
            break
    return min(tried, key=lambda path: (path.solution.reached, path.solution.violation))


def merge_points(K: Array, sign: Array, tolerance: float) -> tuple[NDArray[np.int64], float]:
    """Number the distinct points: samples of one class with (nearly) the same kernel are one.

    Returns the numbers, and how far the kernel rows of samples that are taken as one are apart.
    """
    own = np.diagonal(K)
    group = np.arange(len(sign))
    # candidates by a cheap key first: equal points have equal norms
    order = np.argsort(own, kind="stable")
    for run in np.split(order, np.flatnonzero(np.diff(own[order]) > NEAR_NORMS) + 1):
        if len(run) == 1:
            continue
        D = own[run][:, None] + own[run] - 2 * K[np.ix_(run, run)]
        same = (SAME >= D) & (sign[run][:, None] == sign[run])
        for i, near in zip(run, same, strict=True):
            if group[i] == i and near.sum() > 1:
                twins = run[near & (group[run] == run)]
                apart = np.abs(K[twins] - K[i]).max(axis=1)
                group[twins[apart <= tolerance]] = i
    blur = float(np.abs(K - K[group]).max()) if (group != np.arange(len(group))).any() else 0.0
    return np.unique(group, return_inverse=True)[1], blur


def _vertex(sign: Array, upper: Array) -> Array:
    """A feasible corner: both classes filled up to the total of the smaller one."""
    x = np.zeros_like(upper)
    total = min(upper[sign > 0].sum(), upper[sign < 0].sum())
    for side in (1.0, -1.0):
        mine = np.flatnonzero(sign == side)
        before = np.concatenate([[0.0], np.cumsum(upper[mine])[:-1]])
        x[mine] = np.clip(total - before, 0.0, upper[mine])
    return x
