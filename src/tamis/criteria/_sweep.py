"""The sweep operator: regression of every column on a subset, in one matrix."""

import numpy as np
from scipy.linalg.lapack import dpstrf

from tamis._arrays import Array, Mask, Subset
from tamis._linalg import DEPENDENT, MOVES

#: What is dependent while columns enter; a factor of two above what makes a matrix singular.
TOLERANCE = 2 * DEPENDENT
#: A coefficient above this is no rounding (columns are scaled to one size).
TAKES_PART = 1e-7


class Swept:
    r"""Gram matrix W of columns, swept on the independent members B of a subset.

    .. math:: T = \begin{pmatrix} -W_{BB}^{-1} & W_{BB}^{-1} W_{BR} \\ \cdot &
              W_{RR} - W_{RB} W_{BB}^{-1} W_{BR} \end{pmatrix}

    holds the inverse, the coefficients and the products of the residuals (Goodnight 1979). One
    column in or out costs O(d^2) whatever the size of the subset. Members that depend on others
    are left out of B.
    """

    def __init__(self, W: Array):
        self.W, self.diagonal, self.T = W, W.diagonal().copy(), W.copy()
        self.held: Mask = np.zeros(len(W), dtype=bool)
        self.base: Mask = np.zeros(len(W), dtype=bool)
        self.n_dropped = 0
        self._gains: Array | None = None

    def move_to(self, subset: Subset) -> None:
        """Make the subset's regression the current one."""
        wanted = np.zeros(len(self.W), dtype=bool)
        wanted[subset] = True
        if np.array_equal(wanted, self.held):
            return
        leaving = np.flatnonzero(self.base & ~wanted)
        entering = wanted & ~self.base & ~self.dependent()
        if self.n_dropped + len(leaving) > MOVES or entering.sum() > MOVES:
            self._restart(wanted, independent_members(self.W, subset))
            return
        for column in leaving:
            self._drop(int(column))
        self.held = wanted
        self._complete()

    def dependent(self) -> Mask:
        """Which columns outside B does B already determine."""
        return ~self.base & (self.T.diagonal() <= TOLERANCE * self.diagonal)

    def gains(self) -> Array:
        """For each column the squares that adding it explains, exactly 0 where none can be."""
        if self._gains is None:  # else members came or went without a change of the span
            self._gains = self._fresh_gains()
        return self._gains

    def _fresh_gains(self) -> Array:
        left = self.T.diagonal()
        residual = self.T[~self.base]
        squares = np.einsum("ij,ij->j", residual, residual)
        nothing = self.base | self.dependent()
        return np.where(nothing, 0.0, squares / np.where(nothing, 1.0, left))

    def losses(self, subset: Subset) -> Array:
        """For each member the squares that no other explains, exactly 0 where others can stand in.

        Removing b of B leaves C_b^2 / (W_BB^-1)_bb more of each column, C_b its coefficients; the
        coefficient of b itself is 1.
        """
        losses = np.zeros(len(self.W))
        coefs = self.T[np.ix_(self.base, ~self.base)]
        inverse = -self.T.diagonal()[self.base]
        losses[self.base] = (1 + np.einsum("ij,ij->i", coefs, coefs)) / inverse
        losses[self._replaceable()] = 0.0
        return losses[subset]

    def _replaceable(self) -> Mask:
        """Members of B that take part in a member outside B, which could stand in for them."""
        spare = self.held & ~self.base & (self.diagonal > 0)
        size = np.sqrt(self.diagonal)
        coefs = np.abs(self.T[np.ix_(self.base, spare)]) * size[self.base, None] / size[spare]
        found = np.zeros(len(self.W), dtype=bool)
        found[self.base] = (coefs > TAKES_PART).any(axis=1)
        return found

    def _complete(self) -> None:
        """Sweep members that B does not determine, the most independent first."""
        while (free := self.held & ~self.base & ~self.dependent()).any():
            share = np.where(free, self.T.diagonal() / np.where(free, self.diagonal, 1.0), -1.0)
            self._add(int(share.argmax()))

    def _add(self, column: int) -> None:
        self._sweep(column, +1)
        self.base[column] = True

    def _drop(self, column: int) -> None:
        self._sweep(column, -1)
        self.base[column] = False
        self.n_dropped += 1

    def _sweep(self, column: int, sign: int) -> None:
        self._gains = None
        pivot, line = self.T[column, column], self.T[column].copy()
        self.T -= np.outer(line, line / pivot)
        self.T[column] = self.T[:, column] = sign * line / pivot
        self.T[column, column] = -1 / pivot

    def _restart(self, held: Mask, base: Subset) -> None:
        """From W itself, so that the rounding of many moves cannot build up."""
        self.held, self.n_dropped, self._gains = held, 0, None
        self.base = np.zeros(len(self.W), dtype=bool)
        self.base[base] = True
        rest = ~self.base
        inverse = np.linalg.inv(self.W[np.ix_(base, base)])
        coefs = inverse @ self.W[base]
        self.T = self.W - self.W[:, base] @ coefs
        self.T[base] = coefs
        self.T[np.ix_(rest, base)] = coefs[:, rest].T
        self.T[np.ix_(base, base)] = -(inverse + inverse.T) / 2


def independent_members(W: Array, subset: Subset) -> Subset:
    """Members that span all, by Cholesky with the most independent first."""
    block = W[np.ix_(subset, subset)]
    alive = np.flatnonzero(block.diagonal() > 0)
    size = np.sqrt(block.diagonal()[alive])
    if not len(alive):
        return subset[:0]
    _, order, rank, _ = dpstrf(block[np.ix_(alive, alive)] / np.outer(size, size), tol=TOLERANCE)
    return subset[alive[order[:rank] - 1]]
