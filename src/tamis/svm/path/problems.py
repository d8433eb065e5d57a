"""Paths of classification and regression SVMs: their problems, and what a fold of them predicts."""

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

    def outputs(self, rows: Array) -> PathOutputs:
        """Lambdas and h = lambda f (rows x points), from centred kernel rows."""
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


class PathFold(NamedTuple):
    """The paths of one training part, and the rows on which they are validated."""

    machines: PairwisePaths
    X: Array
    target: NDArray[np.int64]
    own: Array | None = None  # kernel of the points with themselves, where precomputed
    weight: Array | None = None  # of the points in the score

    def steps(self, scoring: object, ways: tuple[int, ...] = (0,)) -> list[StepCounts]:
        """Correct predictions along the path: as they are (0), at best (1) and at worst (-1)."""
        bracketed = []
        for path, gram in zip(self.machines.paths, self.machines.grams, strict=True):
            rows = gram.rows(self.X)
            found = path.outputs(rows)
            if not any(ways):
                bracketed.append(Bracketed(found.lam, found.h, found.band, found.band))
                continue
            bounds = bound_errors(path.solution, found, gram, self.X, rows, self.own)
            # an order is of two points: there any zone may matter
            every = np.ones(len(bounds.zone), bool)
            bracketed.append(bounds.bracketed(every if scoring == "roc_auc" else bounds.unsure()))
        return [self.count_right(bracketed, scoring, way) for way in ways]

    def count_right(self, outputs: list[Bracketed], scoring: object, way: int) -> StepCounts:
        """Correct predictions of some outputs, one of the ``ways`` of :meth:`steps`."""
        # an output counts as 0 only as far as its sign is not certain
        zeros = [np.zeros_like(m.h) if way else np.minimum(m.band, m.error) for m in outputs]
        if len(outputs) > 1:
            lines = [(m.lam, m.h + zero) for m, zero in zip(outputs, zeros, strict=True)]
            errors = [m.error for m in outputs] if way else []
            n_classes = self.machines.n_classes
            return vote_steps(lines, self.target, n_classes, self.weight, way, errors)
        (one,), (zero,) = outputs, zeros
        # outputs moved to the benefit (1) or the detriment (-1) of the true labels
        moved = one.h + way * np.where(self.target == 1, 1.0, -1.0) * one.error
        if scoring == "roc_auc":
            pairs = OrderPairs.of(self.X, self.target, self.weight)
            return order_steps(one.lam, moved, zero, pairs)
        return label_steps(one.lam, moved + zero, self.target, self.weight)


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


# Half-width that a tube of none is given, relative to the target: less than the path is exact to.
THINNEST = 1e-10


@dataclass(frozen=True)
class TubePath:
    """Path of a regression on a training set."""

    n_samples: int
    gram: Gram
    solution: SolutionPath
    shift: float  # taken from the target before

    def predict(self, X: Array, lam: float) -> Array:
        """Predictions at lambda."""
        w, b = self.solution.weights(lam)
        with np.errstate(over="ignore", invalid="ignore"):
            found = (self.gram.rows(X) @ w + b) / lam + self.shift
        if len(far := np.flatnonzero(~np.isfinite(found))):
            raise InvalidTable(
                f"The prediction for row {far[0]} at C = {1 / lam:.3g} is too large for a number. "
                "Scale the columns, for example by StandardScaler(), and the target."
            )
        return np.asarray(found)

    def dual_coef(self, lam: float) -> Array:
        """Coefficients of all samples."""
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
        """Mean error on new points along the path, and how far it may be from the truth.

        ``own`` is the kernel of the points with themselves, where it is precomputed, ``weight``
        what each point counts in the mean.
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
    """Follow the path of a regression; samples with a bound of 0 do not take part."""
    members = np.flatnonzero(bounds > 0)
    gram, y, bounds = Gram(kernel, X, members), y[members], bounds[members]
    # the intercept takes any shift of y; a small |y| keeps the linear term well scaled
    shift = float(np.median(y))
    y, n = y - shift, len(y)
    # without a tube the two variables of a sample could rise together for ever
    width = max(epsilon, THINNEST * float(np.abs(y).max()))
    programme = QuadraticProgramme(
        gram.K, np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n), np.tile(bounds, 2),
        np.concatenate([y - width, -y - width]), gram.noise, unit=gram.unit, tilt=width - epsilon,
        even=bool((bounds == bounds[0]).all()), bracketed=bracketed,
    )  # fmt: skip
    return TubePath(len(X), gram, follow(programme, np.zeros(2 * n), lambda_range), shift)
