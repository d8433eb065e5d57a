"""Squared losses, and the spaces of functions in which SVMs are trained.

A function is a weighted sum of kernel functions centred at all rows, a weighted sum of kernel
functions centred at landmarks, or a linear function of the columns.
"""

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

#: Number of refinements of the column weights. If another column is 1e10 times as large, the first
#: refinement reduces the error of a weight from 1e-5 to 1e-10, and the second measures the error.
CORRECTIONS = 2
#: If all active outputs are closer than this to their targets of size 1, the distances have too few
#: accurate digits, and multipliers are computed from the column weights instead.
REACHED = 1e-8


class MachinePoint(NamedTuple):
    """An SVM as a point in a function space, with its outputs for the training rows.

    Attributes
    ----------
    beta : array
        Coordinates in the space: the multipliers of the rows, or the weights of the features.
    intercept : float
    outputs : array
        Output for each training row.
    """

    beta: Any
    intercept: float
    outputs: Any


class SquaredLoss(NamedTuple):
    """Squared distance of each output from a tube of half-width ``epsilon`` around the target.

    If ``one_sided``, it is the squared hinge loss max(0, 1 - y f)² of the output f, for y = ±1.
    """

    y: Any
    epsilon: float = 0.0
    one_sided: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether all samples are active, whatever their outputs are."""
        return self.epsilon == 0 and not self.one_sided

    def sides(self, outputs: Any) -> Any:
        """Return the sign of ``y - outputs`` for each sample, or 0 if the sample has no loss."""
        xp, off = namespace(self.y), self.y - outputs
        if self.takes_all:
            return xp.ones_like(off)
        return xp.where(self.beyond(outputs) > 0, xp.sign(off), xp.zeros_like(off))

    def targets(self, sides: Any) -> Any:
        """Return the target of each sample in the system: the edge of the tube on its side."""
        return self.y - self.epsilon * sides

    def beyond(self, outputs: Any) -> Any:
        """Return how far each output is outside the tube. It is negative if there is no loss."""
        off = self.y - outputs
        return (self.y * off if self.one_sided else namespace(off).abs(off)) - self.epsilon

    def pull(self, outputs: Any) -> Any:
        """Return the change that moves each output to the edge of the tube, or 0 without loss."""
        xp, over = namespace(self.y), self.beyond(outputs)
        return xp.sign(self.y - outputs) * xp.where(over > 0, over, xp.zeros_like(over))


class SquaredProblem(NamedTuple):
    """The training problem of one output: minimise ‖w‖²/2 + Σ Cᵢ lossᵢ².

    Attributes
    ----------
    ridge : array
        1 / 2C of each sample.
    loss : SquaredLoss
    intercept : bool
        Whether there is an intercept. It is not penalised.
    """

    ridge: Any
    loss: SquaredLoss
    intercept: bool = True


class KernelSpace(NamedTuple):
    """Space of all functions of a kernel. The outputs are K beta + intercept.

    The coordinates beta are the multipliers of the training rows.
    """

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
        """Estimate the error of the outputs due to rounding of the kernel."""
        xp = namespace(self.K)
        return EPS * self.size * float(xp.sqrt(xp.sum(beta * beta)))


def fill_active(own: Any, active: Any, ridge: Any) -> Any:
    """Return an array for all samples, with ``own`` for the active samples and 0 for the others."""
    xp = namespace(own)
    # the array API has no assignment by index, so values are gathered by their positions
    place = np.full(ridge.shape[0], len(active))
    place[active] = np.arange(len(active))
    filled = xp.concat([own, xp.zeros_like(own[:1])])
    return xp.take(filled, move(place, own, exact=True))


def _system(matrix: Any, ridge: Any, target: Any, intercept: bool) -> tuple[Any, float]:
    """Solve (matrix + ridge) β + b = target, 1'β = 0 for β and b. The matrix may be overwritten."""
    xp = namespace(matrix)
    matrix = with_diagonal(matrix, ridge)
    if not intercept:
        return cholesky_solve(matrix, target[:, None])[:, 0], 0.0
    both = cholesky_solve(matrix, xp.stack([target, xp.ones_like(target)], axis=1))
    b = float(xp.sum(both[:, 0]) / xp.sum(both[:, 1]))
    return both[:, 0] - b * both[:, 1], b


class FeatureSpace:
    """Space of the functions w'φ + b, where φ are features of a row. The coordinates are w.

    In each step, the features are centred on the weighted mean of the active samples, so that the
    linear system has no intercept.
    """

    def __init__(self, F: Any):
        #: Features of the training rows, of shape (features, rows).
        self.F = F
        #: The last correction of the weights, from which their error is estimated.
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
        """Solve (I + A A') w = A target for w."""

    @abstractmethod
    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        """Return the multiplier of each training row or landmark."""

    def inner(self, one: MachinePoint, other: MachinePoint) -> Any:
        return namespace(self.F).sum(one.beta * other.beta)

    def error(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> float:
        xp = namespace(self.F)
        return float(xp.max(xp.abs(self.off @ self.F)))


class LandmarkSpace(FeatureSpace):
    """Space of the functions Σ aₗ k(xₗ, ·), where the landmarks xₗ are a subset of the rows.

    The weights aₗ are fitted to all rows. Let K_LL be the kernel matrix of the landmarks, and K_LN
    the kernel between landmarks and rows. With K_LL = R R', the columns of F = R⁻¹ K_LN are
    features of the rows. A function with the weights w of these features has a = R⁻' w, and its
    norm is the norm of w. Each step solves a system with as many unknowns as there are landmarks.
    Its matrix, I + F_A diag(2C) F_A', is well-conditioned even if K_LL is not.
    """

    def __init__(self, kernel: Kernel, X: Any, landmarks: Any):
        own = rows_taken(X, landmarks)
        K = kernel_matrix(kernel, own, own)
        # eigenvalues that are 0 up to rounding are made positive
        floor = len(landmarks) * EPS * namespace(X).max(diagonal(K))
        # if all landmarks are at the origin, K is 0, and any positive number suffices
        floor = floor if float(floor) > 0 else 1.0
        self.factor = lower_factor(with_diagonal(K, namespace(X).zeros_like(K[0, :]) + floor))
        super().__init__(lower_solve(self.factor, kernel_matrix(kernel, own, X)))

    def _weights(self, A: Any, target: Any) -> Any:
        xp = namespace(A)
        solve = cholesky_solver(with_diagonal(A @ A.T, xp.ones_like(A[:, 0])))
        w = solve((A @ target)[:, None])[:, 0]
        # one refinement, because squaring the features loses digits
        self.off = solve((A @ (target - w @ A) - w)[:, None])[:, 0]
        return w + self.off

    def multipliers(self, problem: SquaredProblem, sides: Any, found: MachinePoint) -> Any:
        return lower_solve(self.factor, found.beta[:, None], transposed=True)[:, 0]


class LinearSpace(FeatureSpace):
    """Space of all linear functions. The coordinates are the weights of the columns.

    It is more accurate than a linear kernel, which squares the columns and sums multipliers as
    large as C. But each step needs a singular value decomposition. If landmarks ``own`` are given,
    the column weights are restricted to weighted sums of the landmarks.
    """

    def __init__(self, X: Any, own: Any = None):
        xp = namespace(X)
        with np.errstate(over="ignore"):
            squares = xp.sum(X * X, axis=0)
        if not bool(xp.all(xp.isfinite(squares))):
            raise too_large("linear")
        #: Orthonormal basis of the span of the landmarks, and the matrix that maps weights of the
        #: basis to multipliers of the landmarks. None if there are no landmarks.
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
        """Return the weight of each column."""
        return w if self.basis is None else self.basis @ w

    def _weights(self, A: Any, target: Any) -> Any:
        xp = namespace(A)
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        # w is a weighted sum of active rows, so directions in which these rows are 0 up to rounding
        # are dropped
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
        """Return multipliers with which the active rows sum to w, or None if several exist."""
        xp = namespace(w)
        A = xp.take(self.F, move(active, w, exact=True), axis=1)
        if intercept:  # multipliers sum to 0
            A = xp.concat([A, xp.zeros_like(A[:1, :]) + xp.max(xp.abs(A))])
            w = xp.concat([w, xp.zeros_like(w[:1])])
        U, sizes, V = xp.linalg.svd(A, full_matrices=False)
        if not bool(_above_rounding(sizes, max(A.shape))[-1]):
            return None
        return V.T @ ((U.T @ w) / sizes)


def _above_rounding(sizes: Any, n: int) -> Any:
    """Return a mask of the singular values that exceed the rounding error of a sum of n numbers."""
    return sizes > n * EPS * sizes[0]


#: Function space of an SVM.
Space = KernelSpace | FeatureSpace


def kernel_matrix(kernel: Kernel, X: Any, Y: Any) -> Any:
    """Return the kernel values between the rows of two arrays, which may be of any library."""
    xp = namespace(X, Y)
    with np.errstate(over="ignore", invalid="ignore"):
        K = _kernel_values(kernel, X, Y)
        finite = bool(xp.all(xp.isfinite(xp.sum(K, axis=0))))  # then so are all entries
    if not finite:
        raise too_large(kernel.name)
    return K


def _kernel_values(kernel: Kernel, X: Any, Y: Any) -> Any:
    xp = namespace(X, Y)
    if kernel.name == "linear" or not Y.shape[0]:
        return X @ Y.T
    if kernel.name == "poly":
        return (X @ Y.T * kernel.gamma + kernel.coef0) ** kernel.degree
    # a shift does not change distances, and products near the origin lose fewer digits
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
