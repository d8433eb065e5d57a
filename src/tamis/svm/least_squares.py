"""The least-squares machine at every C: outputs as functions of λ, and where they change sign.

With HKH = QEQ' the centred kernel of the training rows and λ = 1 / 2C, the machine of
(K + λ) β + b = y, 1'β = 0 has β = Q (E + λ)⁻¹ Q'Hy, so an output is f(λ) = ȳ + Σ_j N_j / (e_j + λ):
what stands to its positive numerators falls with λ, and so does what stands to the negative ones.
On any interval that bounds f and its derivative, which decides where a sign is certain.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array

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
EPS = float(np.finfo(float).eps)


class LeastSquaresPath:
    """The machines of one training set at every C.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix.
    y : array
        Targets.
    """

    def __init__(self, K: Array, y: Array):
        self.y, self.means = y, K.mean(axis=0)
        centred = K - self.means - self.means[:, None] + self.means.mean()
        values, self.vectors = np.linalg.eigh(centred)
        self.values = np.maximum(values, 0.0)
        self.along = self.vectors.T @ (y - y.mean())

    def outputs(self, rows: Array) -> "RationalOutputs":
        """Outputs of other samples from their kernel with the training rows."""
        # β sums to 0, so that a constant in a kernel row makes no difference but for b
        A = (rows - self.means) @ self.vectors
        return RationalOutputs(A * self.along, self.values, float(self.y.mean()))

    def multipliers(self, lam: float) -> Array:
        """β at one λ."""
        found: Array = self.vectors @ (self.along / (self.values + lam))
        return found

    def left_out(self, lam: float) -> Array:
        """Output of each training sample by the machine without it, in closed form."""
        shrunk = 1 / (self.values + lam)
        # the constant vector, of eigenvalue 0, belongs to the border of the system
        diagonal = self.vectors**2 @ shrunk - 1 / (len(self.y) * lam)
        return np.asarray(self.y - self.multipliers(lam) / diagonal)


class SignChange(NamedTuple):
    """A bracket of λ in which an output is or may be 0; certain signs on both of its sides."""

    row: int
    low: float
    high: float
    below: bool  # whether the output is positive at the low end
    above: bool


class _At(NamedTuple):
    """Both parts of outputs and of minus their derivatives at one λ each, and what they doubt."""

    rise: Array
    fall: Array
    rise_slope: Array
    fall_slope: Array


class RationalOutputs:
    """offset + Σ_j N_vj / (e_j + λ), for every row v of the numerators."""

    def __init__(self, numerators: Array, poles: Array, offset: float):
        self.up, self.down = np.maximum(numerators, 0), np.maximum(-numerators, 0)
        self.poles, self.offset = poles, offset
        self.largest, self.digits = float(poles.max()), 4 * EPS * np.sqrt(len(poles))

    def __call__(self, lam: float) -> Array:
        shrunk = 1 / (self.poles + lam)
        return np.asarray(self.offset + self.up @ shrunk - self.down @ shrunk)

    def _at(self, rows: NDArray[np.intp], lam: Array) -> _At:
        """Each row at a λ of its own."""
        parts, size = [], max(1, BLOCK // len(self.poles))
        for i in range(0, len(rows), size):
            some = rows[i : i + size]
            shrunk = 1 / (self.poles + lam[i : i + size, None])
            up, down = self.up[some] * shrunk, self.down[some] * shrunk
            sums = up.sum(axis=1), down.sum(axis=1)
            slopes = np.einsum("ij,ij->i", up, shrunk), np.einsum("ij,ij->i", down, shrunk)
            parts.append((*sums, *slopes))
        return _At(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def doubt(self, at: _At) -> Array:
        """What rounding of the numbers and of the kernel's eigenvalues may have done."""
        steep = self.largest * (at.rise_slope + at.fall_slope)
        found: Array = self.digits * (abs(self.offset) + at.rise + at.fall + steep)
        return found

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
        doubt = np.maximum(self.doubt(left), self.doubt(right))
        f_left = self.offset + left.rise - left.fall
        f_right = self.offset + right.rise - right.fall
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
        positive = self.offset + at.rise - at.fall > 0
        moving = np.ones(len(rows), dtype=bool)
        while moving.any():
            middle = np.sqrt(a * b)
            at = self._at(rows, middle)
            f = self.offset + at.rise - at.fall
            moving &= (np.abs(f) > self.doubt(at)) & (np.log(b / a) > NARROWEST)
            left = moving & ((f > 0) == positive)
            a, b = np.where(left, middle, a), np.where(moving & ~left, middle, b)
        both = zip(rows, a, b, positive, strict=True)
        return [SignChange(int(r), float(i), float(k), bool(s), not s) for r, i, k, s in both]

    def _open(self, rows: NDArray[np.intp], a: Array, b: Array) -> list[SignChange]:
        """Brackets in which nothing could be decided; signs are what the numbers say."""
        if not len(rows):
            return []
        signs = [self.offset + at.rise - at.fall > 0 for at in (self._at(rows, v) for v in (a, b))]
        parts = zip(rows, a, b, *signs, strict=True)
        return [SignChange(int(r), float(i), float(k), bool(s), bool(t)) for r, i, k, s, t in parts]
