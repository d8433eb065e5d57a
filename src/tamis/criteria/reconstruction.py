"""How well a few columns stand for all of them."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from tamis._arrays import FARTHEST, Array, Mask, Subset, check_range
from tamis._linalg import DEPENDENT, MOVES, Residuals, TraceForm, blocks, independent, stacked
from tamis.contract import SubsetCriterion
from tamis.exceptions import InvalidTable

#: The smallest number whose fourth power does not vanish.
SMALLEST = 2.0**-FARTHEST
#: From so many columns on, squaring their Gram matrix (d^3 operations, and d^2 numbers) pays only
#: for as many subsets as would each cost d^2.
MANY = 500
#: What is dependent while members enter: a factor of two above what makes a matrix singular, so
#: that what entered stays invertible whatever the rounding.
TOLERANCE = 2 * DEPENDENT
#: A coefficient above this is no rounding (columns are scaled to one size): 1e-16 times the billion
#: that the condition number of members which count as independent may reach.
TAKES_PART = 1e-7


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
        check_range("ColumnSubset", X)
        if 0 < (largest := max(X.max(), -X.min())) <= SMALLEST:
            raise InvalidTable(
                f"ColumnSubset squares the columns, and the largest number of all, {largest:.3g}, "
                "is too small to be squared. Scale the columns, as a search does with "
                "standardize=True."
            )
        self._gram = X.T @ X
        self._total = float(self._gram.trace())
        self._square: Array | None = None
        self._span = Spanned(self._gram)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # the products of all columns, those of their residuals, and one matrix in the making
        return 32.0 * n_features**2 + 100 * n_features

    def value(self, subset: Subset) -> float:
        return self._value(self.columns(subset))

    def _value(self, columns: Subset) -> float:
        """Value of the columns themselves."""
        columns = independent_members(self._gram, columns)
        rows = self._gram[columns]
        factor = np.linalg.cholesky(rows[:, columns])
        explained = solve_triangular(factor, rows, lower=True)
        return -max(0.0, self._total - float((explained**2).sum()))

    def values(self, subsets: Iterable[Subset]) -> Array:
        asked = [self.columns(subset) for subset in subsets]
        if len(self._gram) > max(len(asked), MANY):
            return np.array([self._value(columns) for columns in asked])
        values = np.full(len(asked), -self._total)
        for indices, stack in stacked(asked):
            # |P_S X|^2 = tr(W_SS^-1 (W^2)_SS)
            explained = TraceForm(self._gram, self._squared).traces(stack)
            values[indices] = np.minimum(explained - self._total, 0.0)
            singular = np.isneginf(explained)
            values[indices[singular]] = [self._value(columns) for columns in stack[singular]]
        return values

    @property
    def _squared(self) -> Array:
        """The square of the Gram matrix, made when it is first asked for."""
        if self._square is None:
            self._square = self._gram @ self._gram
        return self._square

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if self._unit_columns is not None:
            return super().gain(subset, candidates)
        self._span.move_to(subset)
        return self._span.gains()[candidates]

    def loss(self, subset: Subset) -> Array:
        if self._unit_columns is not None:
            return super().loss(subset)
        self._span.move_to(subset)
        return self._span.losses(subset)

    def bound(self, subset: Subset, size: int) -> float:
        return float(self.bounds([subset], size)[0])

    def bounds(self, subsets: Iterable[Subset], size: int) -> Array:
        """Columns inside the span of a subset rebuild no more than its first principal axes."""
        subsets = list(subsets)
        asked = [self.columns(subset) for subset in subsets]
        sizes = np.array([self.most_columns(subset, size) for subset in subsets])
        bounds = np.full(len(asked), -self._total)
        for indices, stack in stacked(asked):
            W = blocks(self._gram, stack)
            good = independent(W)
            root = np.linalg.inv(np.linalg.cholesky(W[good]))
            axes = np.linalg.eigvalsh(
                root @ blocks(self._squared, stack[good]) @ root.swapaxes(1, 2)
            )
            first = stack.shape[1] - sizes[indices[good]]
            explained = np.where(np.arange(stack.shape[1]) >= first[:, None], axes, 0).sum(axis=1)
            bounds[indices[good]] = np.minimum(explained - self._total, 0.0)
            bounds[indices[~good]] = [self._value(columns) for columns in stack[~good]]
        return bounds


class Spanned:
    """The regression on a subset, dependent members left out of it.

    ``base`` marks the members that span all of them, ``held`` all members.
    """

    def __init__(self, W: Array):
        self.sweep = Residuals(W, products=True)
        self.held: Mask = np.zeros(len(W), dtype=bool)
        self.base: Mask = np.zeros(len(W), dtype=bool)
        self._gains: Array | None = None

    def move_to(self, subset: Subset) -> None:
        """Make the subset's regression the current one."""
        wanted = np.zeros(len(self.held), dtype=bool)
        wanted[subset] = True
        if np.array_equal(wanted, self.held):
            return
        self.held = wanted
        leaving, entering = self.base & ~wanted, wanted & ~self.base & ~self.determined()
        if self.sweep.moves + leaving.sum() + entering.sum() > MOVES:
            self.sweep.restart(independent_members(self.sweep.W, subset))
            self._moved()
        else:
            for column in np.flatnonzero(leaving):
                self.sweep.drop(int(column))
                self._moved()
            self._complete()

    def _complete(self) -> None:
        """Take in members that the base does not determine, the most independent first."""
        size = self.sweep.diagonal
        while (free := self.held & ~self.base & ~self.determined()).any():
            share = np.where(free, self.sweep.left / np.where(free, size, 1.0), -1.0)
            self.sweep.add(int(share.argmax()))
            self._moved()

    def _moved(self) -> None:
        self.base = np.zeros(len(self.held), dtype=bool)
        self.base[self.sweep.members] = True
        self._gains = None

    def determined(self) -> Mask:
        """Which columns outside the base does it already determine."""
        return ~self.base & self.sweep.dependent(TOLERANCE)

    def gains(self) -> Array:
        """For each column the squares that adding it explains, exactly 0 where none can be."""
        if self._gains is None:  # else members came or went without a change of the span
            nothing = self.base | self.determined()
            products = self.sweep.products
            assert products is not None  # they were asked for
            squares = np.einsum("ij,ij->j", products, products)
            self._gains = np.where(nothing, 0.0, squares / np.where(nothing, 1.0, self.sweep.left))
        return self._gains

    def losses(self, subset: Subset) -> Array:
        """For each member the squares that no other explains, exactly 0 where others can stand in.

        Removing b of the base leaves C_b^2 / A_bb more of each column, C_b its coefficients.
        """
        losses = np.zeros(len(self.held))
        coefs = self.sweep.coefs
        alone = np.einsum("ij,ij->i", coefs, coefs) / self.sweep.inverse.diagonal()
        losses[self.sweep.members] = np.where(self._replaceable(), 0.0, alone)
        return losses[subset]

    def _replaceable(self) -> Mask:
        """Which of the base take part in a member outside it, which could stand in for them."""
        size = np.sqrt(self.sweep.diagonal)
        spare = self.held & ~self.base & (size > 0)
        coefs = np.abs(self.sweep.coefs[:, spare]) * size[self.sweep.members, None] / size[spare]
        taking: Mask = np.any(coefs > TAKES_PART, axis=1)
        return taking


def independent_members(W: Array, subset: Subset) -> Subset:
    """Members that span all, by Cholesky with the most independent first."""
    block = W[np.ix_(subset, subset)]
    alive = np.flatnonzero(block.diagonal() > 0)
    size = np.sqrt(block.diagonal()[alive])
    if not len(alive):
        return subset[:0]
    _, order, rank, _ = dpstrf(block[np.ix_(alive, alive)] / np.outer(size, size), tol=TOLERANCE)
    return subset[alive[order[:rank] - 1]]
