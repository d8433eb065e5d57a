"""Squared losses, and the functions that an SVM may be: of all rows, of some, or of columns."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from tamis._namespace import (
    cholesky_solve,
    cholesky_solver,
    diagonal,
    host,
    lower_factor,
    lower_solve,
    move,
    namespace,
    rows_taken,
    with_diagonal,
)
from tamis.svm.kernels import EPS, Kernel, too_large

#: Times that weights are put right by what rounding left: beside a column 1e10 times as large the
#: first brings a small one from 1e-5 to 1e-10, and the second says that it did.
CORRECTIONS = 2
#: Distance of outputs from their targets, beside targets of the size of 1, below which multipliers
#: are not told by it, but by the weights that they sum to: both then have 8 digits.
REACHED = 1e-8


class MachinePoint(NamedTuple):
    """A machine on its training rows.

    Attributes
    ----------
    beta : array
        Its coordinates in the space: the multipliers of its rows, or weights of features.
    intercept : float
    outputs : array
    """

    beta: Any
    intercept: float
    outputs: Any


class SquaredLoss(NamedTuple):
    """Square of how far an output is outside a tube around y, or on the wrong side of y = ±1.

    With ``one_sided`` it is the squared hinge max(0, 1 - y f)².
    """

    y: Any
    epsilon: float = 0.0
    one_sided: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether every sample is active, whatever its output."""
        return self.epsilon == 0 and not self.one_sided

    def sides(self, outputs: Any) -> Any:
        """For each sample 0 where it loses nothing, else the side that it is on."""
        xp, off = namespace(self.y), self.y - outputs
        if self.takes_all:
            return xp.ones_like(off)
        return xp.where(self.beyond(outputs) > 0, xp.sign(off), xp.zeros_like(off))

    def targets(self, sides: Any) -> Any:
        """What active samples are drawn to."""
        return self.y - self.epsilon * sides

    def beyond(self, outputs: Any) -> Any:
        """How far each output is beyond its edge; negative where nothing is lost."""
        off = self.y - outputs
        return (self.y * off if self.one_sided else namespace(off).abs(off)) - self.epsilon

    def pull(self, outputs: Any) -> Any:
        """The same with the sign of where the output should go; 0 where nothing is lost."""
        xp, over = namespace(self.y), self.beyond(outputs)
        return xp.sign(self.y - outputs) * xp.where(over > 0, over, xp.zeros_like(over))


class SquaredProblem(NamedTuple):
    """What is minimised for one output, ‖w‖²/2 + Σ Cᵢ lossᵢ².

    Attributes
    ----------
    ridge : array
        1 / 2C of each sample.
    loss : SquaredLoss
    intercept : bool
        Whether there is an intercept, which nothing draws to 0.
    """

    ridge: Any
    loss: SquaredLoss
    intercept: bool = True


class KernelSpace(NamedTuple):
    """All functions of a kernel, by the multipliers of all rows: outputs are K beta + intercept."""

    K: Any

    @property
    def size(self) -> float:
        return float(namespace(self.K).max(diagonal(self.K)))

    def start(self, ridge: Any) -> MachinePoint:
        nothing = namespace(self.K).zeros_like(ridge)
        return MachinePoint(nothing, 0.0, nothing)

    def solve(self, problem: SquaredProblem, sides: Any, now: MachinePoint) -> MachinePoint:
        xp, K, (ridge, loss, intercept) = namespace(self.K), self.K, problem
        active, target = np.flatnonzero(host(sides)), loss.targets(sides)
        if not len(active):
            beta, b = xp.zeros_like(ridge), now.intercept
        elif len(active) == K.shape[0]:
            beta, b = _system(xp.asarray(K, copy=True), ridge, target, intercept)
        else:
            index = move(active, K, exact=True)
            own = xp.take(xp.take(K, index, axis=0), index, axis=1)
            found, b = _system(own, xp.take(ridge, index), xp.take(target, index), intercept)
            beta = fill_active(found, active, ridge)
        return MachinePoint(beta, b, K @ beta + b)

    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        return found.beta

    def inner(self, one: MachinePoint, other: MachinePoint) -> Any:
        return namespace(self.K).sum(one.beta * (other.outputs - other.intercept))

    def error(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> float:
        xp = namespace(found.beta)
        off = problem.loss.targets(sides) - found.outputs - problem.ridge * found.beta
        return float(xp.max(xp.where(found.beta != 0, xp.abs(off), xp.zeros_like(off))))

    def rounding(self, beta: Any) -> float:
        """What the last digits of the kernel make of the outputs with such multipliers, about."""
        xp = namespace(self.K)
        return EPS * self.size * float(xp.sqrt(xp.sum(beta * beta)))


def fill_active(own: Any, active: Any, ridge: Any) -> Any:
    """Numbers of the active samples as those of all samples; the others have 0."""
    xp = namespace(own)
    # the standard has no assignment by indices: each sample takes its place among the active
    place = np.full(ridge.shape[0], len(active))
    place[active] = np.arange(len(active))
    filled = xp.concat([own, xp.zeros_like(own[:1])])
    return xp.take(filled, move(place, own, exact=True))


def _system(matrix: Any, ridge: Any, target: Any, intercept: bool) -> tuple[Any, float]:
    """β and b of (matrix + ridge) β + b = target, 1'β = 0; the matrix is overwritten."""
    xp = namespace(matrix)
    matrix = with_diagonal(matrix, ridge)
    if not intercept:
        return cholesky_solve(matrix, target[:, None])[:, 0], 0.0
    both = cholesky_solve(matrix, xp.stack([target, xp.ones_like(target)], axis=1))
    b = float(xp.sum(both[:, 0]) / xp.sum(both[:, 1]))
    return both[:, 0] - b * both[:, 1], b


class FeatureSpace:
    """Functions w'φ + b of features φ of the rows, by the weights w of these features.

    Features are centred on the weighted mean of the active samples, so that the intercept is none
    of a step's system.
    """

    def __init__(self, F: Any):
        #: (feature, row)
        self.F = F
        #: What the last solution had to be put right by.
        self.off = namespace(F).zeros_like(F[:, 0])

    @property
    def size(self) -> float:
        return float(namespace(self.F).max(namespace(self.F).sum(self.F * self.F, axis=0)))

    def start(self, ridge: Any) -> MachinePoint:
        xp = namespace(self.F)
        return MachinePoint(xp.zeros_like(self.F[:, 0]), 0.0, xp.zeros_like(ridge))

    def solve(self, problem: SquaredProblem, sides: Any, now: MachinePoint) -> MachinePoint:
        xp, (ridge, loss, intercept) = namespace(self.F), problem
        active = np.flatnonzero(host(sides))
        if not len(active):
            level = xp.zeros_like(ridge) + now.intercept
            return self.start(ridge)._replace(intercept=now.intercept, outputs=level)
        A, root, target = self.F, 1 / xp.sqrt(ridge), loss.targets(sides)
        if len(active) < ridge.shape[0]:
            index = move(active, A, exact=True)
            root, target = xp.take(root, index), xp.take(target, index)
            A = xp.take(A, index, axis=1)
        middle, level = xp.zeros_like(A[:, 0]), 0.0
        if intercept:
            share = root * root / xp.sum(root * root)
            middle, level = A @ share, float(xp.sum(share * target))
        w = self._weights((A - middle[:, None]) * root, (target - level) * root)
        b = level - float(xp.sum(middle * w))
        return MachinePoint(w, b, w @ self.F + b)

    @abstractmethod
    def _weights(self, A: Any, target: Any) -> Any:
        """w of (I + A A') w = A target."""

    @abstractmethod
    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        """What multiplies the kernel of each row, or of each landmark."""

    def inner(self, one: MachinePoint, other: MachinePoint) -> Any:
        return namespace(self.F).sum(one.beta * other.beta)

    def error(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> float:
        xp = namespace(self.F)
        return float(xp.max(xp.abs(self.off @ self.F)))


class LandmarkSpace(FeatureSpace):
    """Functions Σ aₗ k(xₗ, ·) of some rows alone, the landmarks, whose weights all rows decide.

    With K_LL = R R' the columns of F = R⁻¹ K_LN are features of the rows in which the norm of a
    function is that of its weights w, and a = R⁻' w. A step is one system as large as the
    landmarks are many, of a matrix I + F_A diag(2C) F_A' whose condition that of K_LL does not
    spoil.
    """

    def __init__(self, kernel: Kernel, X: Any, landmarks: Any):
        own = rows_taken(X, landmarks)
        K = kernel_matrix(kernel, own, own)
        # what rounding leaves of eigenvalues that are 0 must be no less: sums of so many numbers
        floor = len(landmarks) * EPS * namespace(X).max(diagonal(K))
        # of landmarks at the origin every function is 0, in whatever units
        floor = floor if float(floor) > 0 else 1.0
        self.factor = lower_factor(with_diagonal(K, namespace(X).zeros_like(K[0, :]) + floor))
        super().__init__(lower_solve(self.factor, kernel_matrix(kernel, own, X)))

    def _weights(self, A: Any, target: Any) -> Any:
        xp = namespace(A)
        solve = cholesky_solver(with_diagonal(A @ A.T, xp.ones_like(A[:, 0])))
        w = solve((A @ target)[:, None])[:, 0]
        # once more with what rounding left: squares of features lose digits that they have
        self.off = solve((A @ (target - w @ A) - w)[:, None])[:, 0]
        return w + self.off

    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        return lower_solve(self.factor, found.beta[:, None], transposed=True)[:, 0]


class LinearSpace(FeatureSpace):
    """All linear functions, by the weights of the columns: for those that kernels lose digits of.

    In a kernel matrix columns are squared, and multipliers of the size of C must cancel in sums
    that are the weights; here neither happens, for a decomposition in each step. Of landmarks it
    is the functions whose weights are a sum of these rows.
    """

    def __init__(self, X: Any, own: Any = None):
        xp = namespace(X)
        with np.errstate(over="ignore"):
            squares = xp.sum(X * X, axis=0)
        if not bool(xp.all(xp.isfinite(squares))):
            raise too_large("linear")
        #: Directions of the landmarks, which features are along, and what makes these of them.
        self.basis = self.made_of = None
        if own is not None:
            U, sizes, V = xp.linalg.svd(own, full_matrices=False)
            there = _above_rounding(sizes, max(own.shape))
            self.basis = V.T * xp.astype(there, X.dtype)
            self.made_of = xp.where(there, U, xp.zeros_like(U)) / xp.where(
                there, sizes, xp.ones_like(sizes)
            )
            X = X @ self.basis
        super().__init__(X.T)

    def columns(self, w: Any) -> Any:
        """The weight of each column."""
        return w if self.basis is None else self.basis @ w

    def _weights(self, A: Any, target: Any) -> Any:
        xp = namespace(A)
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        # directions that active rows do not have, but for rounding: w is a sum of rows
        there = _above_rounding(sizes, max(A.shape))
        sizes, nothing = xp.where(there, sizes, xp.ones_like(sizes)), xp.zeros_like(sizes)
        w = U @ xp.where(there, (V @ target) / (sizes + 1 / sizes), nothing)
        for _ in range(CORRECTIONS):
            left = U.T @ (A @ (target - w @ A) - w)
            self.off = U @ xp.where(there, left / sizes / (sizes + 1 / sizes), nothing)
            w = w + self.off
        return w

    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        if self.basis is not None:
            return self.made_of @ found.beta
        xp, (ridge, loss, intercept) = namespace(sides), problem
        active = np.flatnonzero(host(sides))
        off = loss.targets(sides) - found.outputs
        off = xp.where(sides != 0, off, xp.zeros_like(off))
        reached = float(xp.max(xp.abs(off))) < REACHED
        if not reached or not 0 < len(active) <= self.F.shape[0] + intercept:
            return off / ridge
        own = self._summing(active, found.beta, intercept)
        return off / ridge if own is None else fill_active(own, active, ridge)

    def _summing(self, active: Any, w: Any, intercept: bool) -> Any:
        """The multipliers of active rows whose sum is w; None where more than one set has it."""
        xp = namespace(w)
        A = xp.take(self.F, move(active, w, exact=True), axis=1)
        if intercept:  # they sum to 0 too
            A = xp.concat([A, xp.zeros_like(A[:1, :]) + xp.max(xp.abs(A))])
            w = xp.concat([w, xp.zeros_like(w[:1])])
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        if not bool(_above_rounding(sizes, max(A.shape))[-1]):
            return None
        return V.T @ ((U.T @ w) / sizes)


def _above_rounding(sizes: Any, n: int) -> Any:
    """Which singular values are not what rounding makes of 0, in sums of n numbers."""
    return sizes > n * EPS * sizes[0]


#: The functions that a machine may be.
Space = KernelSpace | FeatureSpace


def kernel_matrix(kernel: Kernel, X: Any, Y: Any) -> Any:
    """Kernel between the rows of two arrays of any library."""
    xp = namespace(X, Y)
    with np.errstate(over="ignore", invalid="ignore"):
        K = _kernel_values(kernel, X, Y)
        finite = bool(xp.all(xp.isfinite(xp.sum(K, axis=0))))  # as every number of it then is
    if not finite:
        raise too_large(kernel.name)
    return K


def _kernel_values(kernel: Kernel, X: Any, Y: Any) -> Any:
    xp = namespace(X, Y)
    if kernel.name == "linear" or not Y.shape[0]:
        return X @ Y.T
    if kernel.name == "poly":
        return (X @ Y.T * kernel.gamma + kernel.coef0) ** kernel.degree
    # distances do not see where the origin is, and lose fewer digits where it is near
    origin = xp.mean(Y, axis=0)
    own = Y - origin
    X, Y = own if X is Y else X - origin, own
    G = X @ Y.T
    G *= 2
    G -= xp.sum(X * X, axis=1)[:, None]
    G -= xp.sum(Y * Y, axis=1)[None, :]
    G = xp.minimum(G, xp.zeros_like(G[:1, :1]))
    G *= kernel.gamma
    return xp.exp(G)
