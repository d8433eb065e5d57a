"""The least-squares machine at every C: outputs as functions of λ, and where they change sign.

With HKH = QEQ' the centred kernel of the training rows and λ = 1 / 2C, the machine of
(K + λ) β + b = y, 1'β = 0 has β = Q (E + λ)⁻¹ Q'Hy, so an output is f(λ) = ȳ + Σ_j N_j / (e_j + λ):
what stands to its positive numerators falls with λ, and so does what stands to the negative ones.
On any interval that bounds f and its derivative, which decides where a sign is certain.

Certain beside rounding too: with u = Q (E + λ)⁻¹ Q'Hr for a kernel row r, an error δK of the kernel
moves f by u'δKβ, and one of r or y by δr'β or u'δy. All of these fall with λ.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.svm.kernels import EPS, Kernel, too_large

#: Intervals of the range to begin with: a few for each doubling of C.
CELLS = 64
#: Narrowest interval of log λ that is cut again; what is not decided in it stays open.
NARROWEST = 1e-9
#: Intervals of one output that may wait at a time: a root needs one or two, one that is hardly
#: missed some dozens. An output that is 0 but for rounding, as between contradicting copies, would
#: need millions; it stays open.
MOST = 256
#: Numbers of the gathered numerators that are held at a time (32 MB).
BLOCK = 4_000_000
#: Share of the kernel's size to which an eigenvalue may be below 0 by rounding.
INDEFINITE = 1e-10


def kernel_numbers(kernel: Kernel, X: Array, Y: Array) -> tuple[Array, Array]:
    """Kernel between rows of ``X`` and training rows ``Y``, but for constants of rows and columns.

    The second array has a size for each row: a value is right to it times the rounding of a number.
    Distances come from differences, and of the Gaussian kernel the constant 1 is left out: far
    origins, far columns and flat kernels lose no digits.
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
    """What the sums that make a linear or polynomial kernel reach, for each row of X."""
    reach = np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1).max()
    if kernel.name == "linear":
        return np.asarray(reach)
    return np.asarray(kernel.degree * (kernel.gamma * reach + abs(kernel.coef0)) ** kernel.degree)


class LeastSquaresPath:
    """The machines of one training set at every C.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix.
    y : array
        Targets.
    size : float, optional
        What the rounding of the kernel goes by; by default its largest number.
    """

    def __init__(self, K: Array, y: Array, size: float | None = None):
        self.y, self.means = y, K.mean(axis=0)
        self.size = float(np.abs(K).max()) if size is None else size
        centred = K - self.means - self.means[:, None] + self.means.mean()
        values, self.vectors = np.linalg.eigh(centred)
        below = max(0.0, -float(values[0]))
        if below > INDEFINITE * (self.size + float(values[-1])):
            raise InvalidParameter(
                "The least-squares machine needs a kernel matrix that is positive semidefinite; "
                f"an eigenvalue of this one is {values[0]:.3g}. A poly kernel needs coef0 of at "
                "least 0."
            )
        self.values = np.maximum(values, 0.0)
        self.along = self.vectors.T @ (y - y.mean())
        #: How far the kernel matrix may be from the one that the numbers stand for.
        self.error = _digits(len(y)) * (self.size + float(self.values[-1])) + below

    def outputs(self, rows: Array, size: Array | None = None) -> "RationalOutputs":
        """Outputs of other samples from their kernel with the training rows."""
        size = np.abs(rows).max(axis=1) if size is None else size
        # β sums to 0, so that a constant in a kernel row makes no difference but for b
        rows = rows - self.means
        rows -= rows.mean(axis=1, keepdims=True)
        errors = _digits(len(self.y)) * (size + self.size + np.linalg.norm(rows, axis=1))
        doubts = Doubts(self.error, errors, _digits(len(self.y)) * float(np.linalg.norm(self.y)))
        offset = float(self.y.mean())
        return RationalOutputs(rows @ self.vectors, self.along, self.values, offset, doubts)


class SignChange(NamedTuple):
    """A bracket of λ in which an output is or may be 0; certain signs on both of its sides."""

    row: int
    low: float
    high: float
    below: bool  # whether the output is positive at the low end
    above: bool


class Doubts(NamedTuple):
    """What the numbers of a path may be off by."""

    kernel: float  # the matrix, as a norm
    rows: Array  # each kernel row of a new sample, as a norm
    targets: float


class _At(NamedTuple):
    """Both parts of outputs and of minus their derivatives at one λ each."""

    rise: Array
    fall: Array
    rise_slope: Array
    fall_slope: Array

    def f(self, offset: float) -> Array:
        """The outputs."""
        return offset + self.rise - self.fall


class RationalOutputs:
    """offset + Σ_j A_vj a_j / (e_j + λ), for every row v."""

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
        """Each row at a λ of its own."""
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
        """Some rows at a time, with 1 / (e_j + λ) for each."""
        size = max(1, BLOCK // len(self.poles))
        for i in range(0, len(rows), size):
            yield rows[i : i + size], 1 / (self.poles + lam[i : i + size, None])

    def doubt(self, rows: NDArray[np.intp], lam: Array, at: _At) -> Array:
        """What rounding of the kernel, its rows, the targets and sums may do, from a λ on."""
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
        """Signs at the low end of a range of λ, and every bracket of a change inside, by rows."""
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
        """Where the sign is the same throughout, and where it changes once."""
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
        """Brackets of single changes, halved until rounding decides."""
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
        """Brackets in which nothing could be decided; signs are what the numbers say."""
        if not len(rows):
            return []
        signs = [self._at(rows, ends).f(self.offset) > 0 for ends in (a, b)]
        return _changes(rows, a, b, *signs)


def _changes(*columns: NDArray[Any]) -> list[SignChange]:
    return list(map(SignChange, *(column.tolist() for column in columns)))


def _digits(n: int) -> float:
    """Rounding of a sum of so many numbers, as a share of their size."""
    return float(4 * EPS * np.sqrt(n))
