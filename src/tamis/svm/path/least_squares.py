"""Least-squares SVMs at every C: outputs as functions of λ = 1 / 2C, and their sign changes.

Let HKH = QEQ' be the eigendecomposition of the centred kernel matrix of the training rows. The SVM
is the solution of (K + λ) β + b = y, 1'β = 0, which is β = Q (E + λ)⁻¹ Q'Hy. So an output has the
form f(λ) = ȳ + Σ_j N_j / (e_j + λ), with a number N_j for each eigenvalue e_j. As λ increases, the
sum of the terms with positive N_j decreases, and the sum of the terms with negative N_j increases.
The values of both sums at the ends of an interval of λ bound f and its derivative inside the
interval. The bounds show whether the sign of f is certain.

The bounds include rounding. Let r be the kernel row of a new sample, and u = Q (E + λ)⁻¹ Q'Hr. An
error δK of the kernel matrix changes f by u'δKβ, an error δr by δr'β, and an error δy of the
targets by u'δy. The bounds on these three changes decrease with λ.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.svm.kernels import EPS, Kernel, too_large

#: Number of intervals into which the range of λ is first divided. There are several for each
#: doubling of C.
CELLS = 64
#: An interval of log λ narrower than this is not halved again. The sign in it stays undecided.
NARROWEST = 1e-9
#: Largest number of undecided intervals of an output. A root needs one or two intervals. An output
#: that nearly reaches 0 needs several dozen. An output that is 0 up to rounding, as for duplicate
#: rows with different labels, would need millions. Its sign stays undecided.
MOST = 256
#: Largest number of numerators N_j in memory at a time (32 MB).
BLOCK = 4_000_000
#: A negative eigenvalue up to this size, relative to the kernel, is treated as rounding.
INDEFINITE = 1e-10


def kernel_numbers(kernel: Kernel, X: Array, Y: Array) -> tuple[Array, Array]:
    """Return the kernel values between the rows of ``X`` and the training rows ``Y``.

    A constant may be missing from each row and each column, which does not change the SVM. The
    second array has a number for each row of ``X``. The error of the kernel values of the row is at
    most this number times the precision of floats. Distances are computed from differences, and the
    constant 1 of the Gaussian kernel is left out. So no digits are lost if columns are large or far
    from 0, or if the kernel is nearly constant.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel.name == "rbf":
            values = np.expm1(-kernel.gamma * cdist(X, Y, "sqeuclidean"))
            size = np.abs(values).max(axis=1)
        else:
            origin = Y.mean(axis=0) if kernel.name == "linear" else 0.0
            values = kernel(X - origin, Y - origin)
            size = _size(kernel, X - origin, Y - origin)
    if not np.isfinite(size).all():
        raise too_large(kernel.name)
    return values, (1 + X.shape[1]) * size


def _size(kernel: Kernel, X: Array, Y: Array) -> Array:
    """Return a bound on the sums in a linear or polynomial kernel, for each row of X."""
    reach = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1).max()
    if kernel.name == "linear":
        return np.asarray(reach)
    return np.asarray(kernel.degree * (kernel.gamma * reach + abs(kernel.coef0)) ** kernel.degree)


class LeastSquaresPath:
    """The least-squares SVMs of a training set at every C.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix.
    y : array
        Targets.
    size : float, optional
        Size of the kernel values, to which their rounding errors are relative. The default is the
        largest kernel value.
    """

    def __init__(self, K: Array, y: Array, size: float | None = None):
        self.y, self.means = y, K.mean(axis=0)
        self.size = float(np.abs(K).max()) if size is None else size
        centred = K - self.means - self.means[:, None] + self.means.mean()
        values, self.vectors = np.linalg.eigh(centred)
        below = max(0.0, -float(values[0]))
        if below > INDEFINITE * (self.size + float(values[-1])):
            raise InvalidParameter(
                "The least-squares SVM needs a kernel matrix that is positive semidefinite; "
                f"an eigenvalue of this one is {values[0]:.3g}. A poly kernel needs coef0 of at "
                "least 0."
            )
        self.values = np.maximum(values, 0.0)
        self.along = self.vectors.T @ (y - y.mean())
        #: Bound on the norm of the error of the kernel matrix.
        self.error = _digits(len(y)) * (self.size + float(self.values[-1])) + below

    def outputs(self, rows: Array, size: Array | None = None) -> "RationalOutputs":
        """Return the outputs of new samples, computed from their kernel rows.

        ``size`` is the size of the kernel values in each row, to which their rounding errors are
        relative. The default is the largest kernel value.
        """
        size = np.abs(rows).max(axis=1) if size is None else size
        # β sums to 0, so adding a constant to a kernel row only changes b
        rows = rows - self.means
        rows -= rows.mean(axis=1, keepdims=True)
        errors = _digits(len(self.y)) * (size + self.size + np.linalg.norm(rows, axis=1))
        doubts = Doubts(self.error, errors, _digits(len(self.y)) * float(np.linalg.norm(self.y)))
        offset = float(self.y.mean())
        return RationalOutputs(rows @ self.vectors, self.along, self.values, offset, doubts)


class SignChange(NamedTuple):
    """An interval of λ in which an output changes its sign, or may change it."""

    row: int  # number of the sample
    low: float
    high: float
    below: bool  # whether the output is positive at the low end
    above: bool  # whether the output is positive at the high end


class Doubts(NamedTuple):
    """Bounds on the norms of the errors in the data of a path."""

    kernel: float  # error of the kernel matrix
    rows: Array  # error of the kernel row of each new sample
    targets: float  # error of the targets


class _At(NamedTuple):
    """Outputs at a λ, each split into the sums of its positive and of its negative terms.

    ``rise_slope`` and ``fall_slope`` split minus the derivative of the outputs in the same way.
    """

    rise: Array
    fall: Array
    rise_slope: Array
    fall_slope: Array

    def f(self, offset: float) -> Array:
        """Return the outputs."""
        return offset + self.rise - self.fall


class RationalOutputs:
    """The outputs of new samples v as functions offset + Σ_j A_vj a_j / (e_j + λ) of λ."""

    def __init__(self, A: Array, along: Array, poles: Array, offset: float, doubts: Doubts):
        numerators = A * along
        self.up, self.down = np.maximum(numerators, 0), np.maximum(-numerators, 0)
        self.poles, self.offset, self.doubts = poles, offset, doubts
        self.squares, self.along_squares = A * A, along * along
        self.digits = _digits(len(poles))

    def __call__(self, lam: float) -> Array:
        shrunk = 1 / (self.poles + lam)
        return np.asarray(self.offset + self.up @ shrunk - self.down @ shrunk)

    def _at(self, rows: NDArray[np.intp], lam: Array) -> _At:
        """Evaluate the output of each row at its own λ."""
        parts = []
        for some, shrunk in self._blocks(rows, lam):
            up, down = self.up[some] * shrunk, self.down[some] * shrunk
            sums = up.sum(axis=1), down.sum(axis=1)
            slopes = np.einsum("ij,ij->i", up, shrunk), np.einsum("ij,ij->i", down, shrunk)
            parts.append((*sums, *slopes))
        return _At(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def _blocks(
        self, rows: NDArray[np.intp], lam: Array
    ) -> Iterator[tuple[NDArray[np.intp], Array]]:
        """Yield blocks of rows, with 1 / (e_j + λ) for each row and each j."""
        size = max(1, BLOCK // len(self.poles))
        for i in range(0, len(rows), size):
            yield rows[i : i + size], 1 / (self.poles + lam[i : i + size, None])

    def doubt(self, rows: NDArray[np.intp], lam: Array, at: _At) -> Array:
        """Bound the error of each output due to rounding, at λ and at any larger λ.

        The bound includes rounding of the kernel matrix, the kernel rows, the targets and the sums.
        """
        parts = []
        for some, shrunk in self._blocks(rows, lam):
            shrunk *= shrunk
            beta = np.sqrt(shrunk @ self.along_squares)
            u = np.sqrt(np.einsum("ij,ij->i", self.squares[some], shrunk))
            of_kernel = u * (self.doubts.kernel * beta + self.doubts.targets)
            parts.append(of_kernel + self.doubts.rows[some] * beta)
        of_sums = self.digits * (abs(self.offset) + at.rise + at.fall)
        return np.asarray(of_sums + np.concatenate(parts))

    def sign_changes(self, low: float, high: float) -> tuple[NDArray[np.bool_], list[SignChange]]:
        """Return the sign of each output at the low end of a range of λ, and the sign changes.

        A sign is whether the output is positive. The sign changes are intervals of λ in which the
        sign of an output changes, or may change.
        """
        n_rows = len(self.up)
        ends = np.geomspace(low, high, CELLS + 1)
        rows = np.repeat(np.arange(n_rows), CELLS)
        a, b = np.tile(ends[:-1], n_rows), np.tile(ends[1:], n_rows)
        found: list[SignChange] = []
        while len(rows):
            sure, one_root = self._decided(rows, a, b)
            found += self._narrowed(rows[one_root], a[one_root], b[one_root])
            left = ~sure & ~one_root
            rows, a, b = rows[left], a[left], b[left]
            narrow = (np.log(b / a) < NARROWEST) | (np.bincount(rows, minlength=1)[rows] > MOST)
            found += self._open(rows[narrow], a[narrow], b[narrow])
            rows, a, b = rows[~narrow], a[~narrow], b[~narrow]
            middle = np.sqrt(a * b)
            rows = np.concatenate([rows, rows])
            a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        return self(low) > 0, sorted(found)

    def _decided(
        self, rows: NDArray[np.intp], a: Array, b: Array
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return masks of the intervals with a constant sign, and of those with one sign change."""
        left, right = self._at(rows, a), self._at(rows, b)
        doubt = self.doubt(rows, a, left)
        f_left, f_right = left.f(self.offset), right.f(self.offset)
        above = self.offset + right.rise - left.fall > doubt
        below = self.offset + left.rise - right.fall < -doubt
        falling = right.rise_slope > left.fall_slope  # the derivative is below 0 throughout
        rising = right.fall_slope > left.rise_slope
        clear = (np.abs(f_left) > doubt) & (np.abs(f_right) > doubt)
        monotone, same = clear & (falling | rising), (f_left > 0) == (f_right > 0)
        return above | below | (monotone & same), monotone & ~same

    def _narrowed(self, rows: NDArray[np.intp], a: Array, b: Array) -> list[SignChange]:
        """Return the sign change in each interval, located up to rounding by repeated halving."""
        if not len(rows):
            return []
        at = self._at(rows, a)
        positive, doubt = at.f(self.offset) > 0, self.doubt(rows, a, at)
        moving = np.ones(len(rows), dtype=bool)
        while moving.any():
            middle = np.sqrt(a * b)
            f = self._at(rows, middle).f(self.offset)
            moving &= (np.abs(f) > doubt) & (np.log(b / a) > NARROWEST)
            left = moving & ((f > 0) == positive)
            a, b = np.where(left, middle, a), np.where(moving & ~left, middle, b)
        return _changes(rows, a, b, positive, ~positive)

    def _open(self, rows: NDArray[np.intp], a: Array, b: Array) -> list[SignChange]:
        """Return the undecided intervals as possible sign changes, with the computed signs."""
        if not len(rows):
            return []
        signs = [self._at(rows, ends).f(self.offset) > 0 for ends in (a, b)]
        return _changes(rows, a, b, *signs)


def _changes(*columns: NDArray[Any]) -> list[SignChange]:
    return list(map(SignChange, *(column.tolist() for column in columns)))


def _digits(n: int) -> float:
    """Return the rounding error of a sum of n numbers, relative to their size."""
    return float(4 * EPS * np.sqrt(n))
