"""Paths of SVMs for classification and regression, and their predictions for a test fold."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.exceptions import InvalidTable
from tamis.svm.curves.bounds import Bracketed, bound_errors
from tamis.svm.curves.errors import ErrorPieces, error_pieces
from tamis.svm.curves.steps import OrderPairs, StepCounts, label_steps, order_steps, vote_steps
from tamis.svm.inputs import FARTHEST_OUTPUT, within
from tamis.svm.kernels import EPS, Gram, Kernel
from tamis.svm.machine import class_pairs
from tamis.svm.path.follow import WANTED, PathOutputs, SolutionPath, follow
from tamis.svm.path.programme import QuadraticProgramme

# Two points may be merged if their squared distance, in units of the kernel, is at most this. The
# kernel has about the same precision.
SAME = 1e-14
# Largest difference between the squared norms of two points that may be merged. The difference is
# about twice the norm times the distance between the points.
NEAR_NORMS = 3e-7


@dataclass(frozen=True)
class BinaryPath:
    """Path of a classifier with labels +1 and -1."""

    solution: SolutionPath
    group: NDArray[np.int64]  # the variable of the programme for each sample
    share: Array  # share of each sample in the upper bound of its variable
    sign: Array  # label of each sample

    def weights(self, lam: float) -> tuple[Array, float]:
        """Return the weights of the samples and the intercept at ``lam``, multiplied by lambda."""
        w, b = self.solution.weights(lam)
        return w[self.group] * self.share, b

    def slopes(self, lam: float) -> tuple[Array, float]:
        """Return the derivatives of :meth:`weights` with respect to lambda."""
        w, b = self.solution.slopes(lam)
        return w[self.group] * self.share, b

    def outputs(self, rows: Array) -> PathOutputs:
        """Return the outputs of new points along the path, from their centred kernel rows."""
        n_variables = len(self.solution.programme.upper)
        if len(self.share) == n_variables:
            return self.solution.outputs(rows)
        order = np.argsort(self.group, kind="stable")
        firsts = np.searchsorted(self.group[order], np.arange(n_variables))
        return self.solution.outputs(np.add.reduceat((rows * self.share)[:, order], firsts, axis=1))

    @property
    def bounds(self) -> Array:
        """Upper bound of the multiplier of each sample, for C = 1."""
        return self.share * self.solution.programme.upper[self.group]


@dataclass(frozen=True)
class PairwisePaths:
    """The paths of all pairs of classes of a training set."""

    n_classes: int
    n_samples: int
    grams: list[Gram]
    paths: list[BinaryPath]

    def outputs(self, X: Array, lam: float) -> Array:
        """Return the outputs h = lambda f of every path for the rows of ``X``, (rows, paths).

        An output that may be only rounding is exactly 0.
        """
        columns = []
        for gram, path in zip(self.grams, self.paths, strict=True):
            (w, b), rows = path.weights(lam), gram.rows(X)
            with np.errstate(over="ignore", invalid="ignore"):  # distant rows
                h = within(rows @ w + b, FARTHEST_OUTPUT)
                zero = path.solution.band(lam, np.abs(rows).max(axis=1))
                columns.append(np.where(np.abs(h) <= zero, 0.0, h))
        return np.column_stack(columns)

    def dual_coef(self, lam: float) -> Array:
        """Return the coefficients ``y alpha`` of all samples, with a row for each path."""
        coef = np.zeros((len(self.paths), self.n_samples))
        for own, gram, path in zip(coef, self.grams, self.paths, strict=True):
            own[gram.members] = path.weights(lam)[0] / lam
        return coef

    def intercepts(self, lam: float) -> Array:
        """Return the intercept of each path, for use with the kernel without centring."""
        found = []
        for gram, path in zip(self.grams, self.paths, strict=True):
            w, own = path.weights(lam)
            shift = gram.means @ w
            if gram.kernel.name == "linear":  # a linear kernel is computed from centred rows
                shift += gram.origin @ (w @ gram.X)
            found.append((own - shift) / lam)
        return np.array(found)


class PathFold(NamedTuple):
    """The paths of a training fold, and the test rows to evaluate them on."""

    machines: PairwisePaths
    X: Array
    target: NDArray[np.int64]
    own: Array | None = None  # kernel value of each test row with itself, if precomputed
    weight: Array | None = None  # weight of each test row in the score

    def steps(self, scoring: object, ways: tuple[int, ...] = (0,)) -> list[StepCounts]:
        """Return the weight of correct predictions along the paths, once for each of ``ways``.

        ``ways`` contains 0 for the predictions as computed, 1 to treat uncertain predictions as
        correct, and -1 to treat them as wrong.
        """
        bracketed = []
        for path, gram in zip(self.machines.paths, self.machines.grams, strict=True):
            rows = gram.rows(self.X)
            found = path.outputs(rows)
            if not any(ways):
                bracketed.append(Bracketed(found.lam, found.h, found.band, found.band))
                continue
            bounds = bound_errors(path.solution, found, gram, self.X, rows, self.own)
            # the order of two points may change in any zone
            every = np.ones(len(bounds.zone), bool)
            bracketed.append(bounds.bracketed(every if scoring == "roc_auc" else bounds.unsure()))
        return [self.count_right(bracketed, scoring, way) for way in ways]

    def count_right(self, outputs: list[Bracketed], scoring: object, way: int) -> StepCounts:
        """Return the weight of correct predictions from the outputs of all paths.

        ``way`` is as in :meth:`steps`.
        """
        # an output is treated as 0 only if its sign is not certain
        zeros = [np.zeros_like(m.h) if way else np.minimum(m.band, m.error) for m in outputs]
        if len(outputs) > 1:
            lines = [(m.lam, m.h + zero) for m, zero in zip(outputs, zeros, strict=True)]
            errors = [m.error for m in outputs] if way else []
            n_classes = self.machines.n_classes
            return vote_steps(lines, self.target, n_classes, self.weight, way, errors)
        (one,), (zero,) = outputs, zeros
        # outputs are moved towards (way 1) or away from (way -1) the true labels
        moved = one.error * np.where(self.target == 1, way, -way)
        moved += one.h
        if scoring == "roc_auc":
            pairs = OrderPairs.of(self.X, self.target, self.weight)
            return order_steps(one.lam, moved, zero, pairs)
        moved += zero
        return label_steps(one.lam, moved, self.target, self.weight)


def pairwise_paths(
    kernel: Kernel,
    X: Array,
    target: NDArray[np.int64],
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> PairwisePaths:
    """Follow the path of every pair of classes. Samples with an upper bound of 0 are dropped."""
    n_classes, grams, paths = int(target.max()) + 1, [], []
    for i, j in class_pairs(n_classes):
        members = np.flatnonzero(((target == i) | (target == j)) & (bounds > 0))
        sign = np.where(target[members] == j, 1.0, -1.0)
        grams.append(Gram(kernel, X, members))
        paths.append(binary_path(grams[-1], sign, bounds[members], lambda_range, bracketed))
    return PairwisePaths(n_classes, len(X), grams, paths)


def binary_path(
    gram: Gram, sign: Array, bounds: Array, lambda_range: tuple[float, float], bracketed: bool
) -> BinaryPath:
    """Follow the path of a classifier with the labels ``sign`` and the upper bounds ``bounds``.

    Duplicate samples are merged into a single variable. Near duplicates are merged only if the path
    fails otherwise.
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
    """Merge samples of the same class whose kernel rows are equal up to ``tolerance``.

    Return the number of the merged point for each sample, and the largest difference between the
    kernel values of merged samples.
    """
    own = np.diagonal(K)
    group = np.arange(len(sign))
    # equal points have equal norms, so only points with similar norms are compared
    order = np.argsort(own, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(own[order]) > NEAR_NORMS) + 1, len(order))
    starts = np.append(0, ends[:-1])
    for k in np.flatnonzero(ends > starts + 1):
        run = order[starts[k] : ends[k]]
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
    """Return a feasible point at which nearly all variables are on a bound.

    The variables of each class are filled one after the other, until their sum is the total bound
    of the smaller class.
    """
    x = np.zeros_like(upper)
    total = min(upper[sign > 0].sum(), upper[sign < 0].sum())
    for side in (1.0, -1.0):
        mine = np.flatnonzero(sign == side)
        before = np.concatenate([[0.0], np.cumsum(upper[mine])[:-1]])
        x[mine] = np.clip(total - before, 0.0, upper[mine])
    return x


# Least half-width of the tube, relative to the target. It is smaller than the precision of the
# path.
THINNEST = 1e-10


@dataclass(frozen=True)
class TubePath:
    """Path of support vector regression on a training set."""

    n_samples: int
    gram: Gram
    solution: SolutionPath
    shift: float  # number that was subtracted from the target

    def predict(self, X: Array, lam: float) -> Array:
        """Return the predictions for the rows of ``X`` at ``lam``."""
        w, b = self.solution.weights(lam)
        with np.errstate(over="ignore", invalid="ignore"):
            found = (self.gram.rows(X) @ w + b) / lam + self.shift
        if len(far := np.flatnonzero(~np.isfinite(found))):
            raise InvalidTable(
                f"The prediction for row {far[0]} at C = {1 / lam:.3g} exceeds the largest "
                "float. Scale the target and the columns, for example with StandardScaler()."
            )
        return np.asarray(found)

    def dual_coef(self, lam: float) -> Array:
        """Return the dual coefficient of each sample."""
        coef = np.zeros(self.n_samples)
        coef[self.gram.members] = self.solution.weights(lam)[0] / lam
        return coef

    def errors(
        self,
        X: Array,
        y: Array,
        scoring: str,
        own: Array | None = None,
        weight: Array | None = None,
    ) -> ErrorPieces:
        """Return the mean error on new points along the path, with its accuracy.

        ``own`` is the kernel value of each point with itself, which a precomputed kernel needs.
        ``weight`` is the weight of each point in the mean.
        """
        rows = self.gram.rows(X)
        found = self.solution.outputs(rows)
        bounds = bound_errors(self.solution, found, self.gram, X, rows, own)
        outputs = bounds.bracketed(np.ones(len(bounds.zone), bool))
        return error_pieces(outputs, y - self.shift, scoring, weight)


def tube_path(
    kernel: Kernel,
    X: Array,
    y: Array,
    bounds: Array,
    epsilon: float,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> TubePath:
    """Follow the path of support vector regression. Samples with a bound of 0 are dropped."""
    members = np.flatnonzero(bounds > 0)
    gram, y, bounds = Gram(kernel, X, members), y[members], bounds[members]
    # a shift of y only changes the intercept; it makes |y| small, so the linear term is well scaled
    shift = float(np.median(y))
    y, n = y - shift, len(y)
    # if the tube had zero width, the two variables of a sample could grow together for ever
    width = max(epsilon, THINNEST * float(np.abs(y).max()))
    programme = QuadraticProgramme(
        gram.K, np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n), np.tile(bounds, 2),
        np.concatenate([y - width, -y - width]), gram.noise, unit=gram.unit, tilt=width - epsilon,
        even=bool((bounds == bounds[0]).all()), bracketed=bracketed,
    )  # fmt: skip
    return TubePath(len(X), gram, follow(programme, np.zeros(2 * n), lambda_range), shift)
