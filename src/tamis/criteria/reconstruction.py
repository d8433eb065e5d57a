"""How well a few columns stand for all of them."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from tamis._arrays import Array, Subset
from tamis._linalg import blocks, independent, stacked
from tamis.contract import SubsetCriterion
from tamis.criteria._sweep import Swept, independent_members

#: From so many columns on, squaring their Gram matrix pays only for as many subsets.
MANY = 500


class ColumnSubset(SubsetCriterion):
    r"""What is lost of all columns when they are rebuilt from a few, without a target.

    .. math:: -\|X - P_S X\|_F^2

    with :math:`P_S` the projection onto the span of the columns of the subset: the squares that
    least squares leaves. The empty subset is worth :math:`-\|X\|_F^2`, one that spans all columns
    0; it is monotone. Columns are taken as they are: a search standardises them, so that each
    counts alike and means play no part; a criterion fitted by hand on columns with means rebuilds
    those too. ``y`` is ignored.

    A column that the subset determines (a copy, a constant one, any at all once the subset has as
    many independent columns as rows) gains exactly 0. A step of a greedy search costs O(d^2) for
    all of d candidates, and a d x d matrix is held.

    References
    ----------
    Farahat, Elgohary, Ghodsi and Kamel (2015), Greedy column subset selection for large-scale data
    sets, Knowledge and Information Systems 45.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, _ = load_iris(return_X_y=True)
    >>> search = Forward(ColumnSubset(), n_features_to_select=2).fit(X)
    >>> search.get_support(indices=True), round(search.trace_[-1].value, 1)
    (array([1, 2]), -34.5)
    """

    needs_target: ClassVar[bool] = False

    @property
    def monotone(self) -> bool:
        """A larger span leaves no more."""
        return True

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._gram = X.T @ X
        self._total = float(self._gram.trace())
        self._square: Array | None = None
        self._swept = Swept(self._gram)

    def value(self, subset: Subset) -> float:
        columns = independent_members(self._gram, self.columns(subset))
        rows = self._gram[columns]
        factor = np.linalg.cholesky(rows[:, columns])
        explained = solve_triangular(factor, rows, lower=True)
        return -max(0.0, self._total - float((explained**2).sum()))

    def values(self, subsets: Iterable[Subset]) -> Array:
        asked = [self.columns(subset) for subset in subsets]
        if len(self._gram) > max(len(asked), MANY):
            return super().values(asked)
        values = np.full(len(asked), -self._total)
        for places, stack in stacked(asked):
            W = blocks(self._gram, stack)
            good = independent(W)
            # |P_S X|^2 = tr(W_SS^-1 (W^2)_SS)
            solved = np.linalg.solve(W[good], self._squares(stack[good]))
            explained = np.trace(solved, axis1=1, axis2=2)
            values[places[good]] = np.minimum(explained - self._total, 0.0)
            values[places[~good]] = super().values(stack[~good])
        return values

    def _squares(self, stack: Array) -> Array:
        """Sub-matrices of the square of the Gram matrix."""
        if self._square is None:
            self._square = self._gram @ self._gram
        return blocks(self._square, stack)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        self._swept.move_to(self.columns(subset))
        return self._swept.gains()[self.columns(candidates)]

    def loss(self, subset: Subset) -> Array:
        self._swept.move_to(self.columns(subset))
        return self._swept.losses(self.columns(subset))

    def bound(self, subset: Subset, size: int) -> float:
        return float(self.bounds([subset], size)[0])

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        """Columns inside the span of a subset rebuild no more than its first principal axes."""
        asked = [self.columns(subset) for subset in subsets]
        bounds = np.full(len(asked), -self._total)
        for places, stack in stacked(asked):
            W = blocks(self._gram, stack)
            good = independent(W)
            root = np.linalg.inv(np.linalg.cholesky(W[good]))
            axes = np.linalg.eigvalsh(root @ self._squares(stack[good]) @ root.swapaxes(1, 2))
            explained = axes[:, stack.shape[1] - size :].sum(axis=1)
            bounds[places[good]] = np.minimum(explained - self._total, 0.0)
            bounds[places[~good]] = super().values(stack[~good])
        return bounds
