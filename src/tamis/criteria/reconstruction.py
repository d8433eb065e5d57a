"""ColumnSubset: how well a subset of the columns reconstructs all of them."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from tamis._arrays import FARTHEST, Array, Mask, Subset, check_range
from tamis._linalg import DEPENDENT, MOVES, Residuals, TraceForm, blocks, independent, stacked
from tamis.contract import SubsetCriterion
from tamis.exceptions import InvalidTable

#: Smallest number whose fourth power does not underflow.
SMALLEST = 2.0**-FARTHEST
#: Above this number of columns d, the Gram matrix is squared only to evaluate at least d subsets.
#: The square costs d^3 operations; without it, each subset costs d^2 operations.
MANY = 500
#: Tolerance below which a column is treated as dependent on the members. It is twice the tolerance
#: for singular matrices, so that rounding errors cannot make the matrix of the members singular.
TOLERANCE = 2 * DEPENDENT
#: Regression coefficients above this absolute value are not rounding errors, if the columns are
#: scaled to the same norm. The threshold is 1e-16 times 1e9, the largest condition number of
#: members that are treated as independent.
TAKES_PART = 1e-7


class ColumnSubset(SubsetCriterion):
    r"""Negative squared error of reconstructing all columns from a subset, without a target.

    .. math:: -\|X - P_S X\|_F^2

    :math:`P_S` is the least-squares projection onto the span of the subset's columns. The empty
    subset has the value :math:`-\|X\|_F^2`, and a subset that spans all columns has the value 0.
    The criterion is monotone. It does not centre or scale the columns. Searches standardise them by
    default, so that all columns have the same weight. Without standardisation, the means of the
    columns are reconstructed too. ``y`` is ignored.

    The gain of a column that is determined by the subset (such as a duplicate or constant column)
    is exactly 0. A step of a greedy search costs O(d^2) for all d candidates, and a d x d matrix is
    kept in memory.

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
        """True, because a larger span cannot increase the error."""
        return True

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        check_range("ColumnSubset", X)
        if 0 < (largest := max(X.max(), -X.min())) <= SMALLEST:
            raise InvalidTable(
                "ColumnSubset squares the columns, but the largest number in the table is "
                f"{largest:.3g}, which is too small. Scale the columns, as a search does with "
                "standardize=True."
            )
        self._gram = X.T @ X
        self._total = float(self._gram.trace())
        self.__dict__.pop("_squared", None)  # cached by an earlier fit
        self._span = Spanned(self._gram)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        # products of all pairs of columns, products of their residuals, and temporary matrices
        return 32.0 * n_features**2 + 100 * n_features

    def value(self, subset: Subset) -> float:
        return self._value(self.columns(subset))

    def _value(self, columns: Subset) -> float:
        columns = independent_members(self._gram, columns)
        rows = self._gram[columns]
        factor = np.linalg.cholesky(rows[:, columns])
        explained = solve_triangular(factor, rows, lower=True)
        return -max(0.0, self._total - float((explained**2).sum()))

    def values(self, subsets: Iterable[Subset]) -> Array:
        members = [self.columns(subset) for subset in subsets]
        if len(self._gram) > max(len(members), MANY):
            return np.array([self._value(columns) for columns in members])
        values = np.full(len(members), -self._total)
        for indices, stack in stacked(members):
            # |P_S X|^2 = tr(W_SS^-1 (W^2)_SS)
            explained = TraceForm(self._gram, self._squared).traces(stack)
            values[indices] = np.minimum(explained - self._total, 0.0)
            singular = np.isneginf(explained)
            values[indices[singular]] = [self._value(columns) for columns in stack[singular]]
        return values

    @cached_property
    def _squared(self) -> Array:
        """Square of the Gram matrix."""
        return self._gram @ self._gram

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
        """Return, for each subset, an upper bound on the value of any ``size`` of its units.

        The bound is the value of the first principal axes of the span of the subset's columns.
        """
        subsets = list(subsets)
        sizes = np.array([self.most_columns(subset, size) for subset in subsets])
        bounds = np.full(len(subsets), -self._total)
        for indices, stack in stacked([self.columns(subset) for subset in subsets]):
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
    """Regression of all columns on the linearly independent members of a subset.

    ``held`` is a mask of all members of the subset. ``base`` is a mask of independent members that
    span all of them.
    """

    def __init__(self, W: Array):
        self.sweep = Residuals(W, products=True)
        self.held: Mask = np.zeros(len(W), dtype=bool)
        self.base: Mask = np.zeros(len(W), dtype=bool)
        self._gains: Array | None = None

    def move_to(self, subset: Subset) -> None:
        """Change to the regression on a different subset."""
        wanted = np.zeros(len(self.held), dtype=bool)
        wanted[subset] = True
        if np.array_equal(wanted, self.held):
            return
        self.held = wanted
        leaving, entering = self.base & ~wanted, wanted & ~self.base & ~self.determined()
        if self.sweep.moves + leaving.sum() + entering.sum() > MOVES:
            self.sweep.restart(independent_members(self.sweep.W, subset))
            self._update_base()
        else:
            for column in np.flatnonzero(leaving):
                self.sweep.drop(int(column))
                self._update_base()
            self._complete()

    def _complete(self) -> None:
        """Add to the base the members that it does not determine, the most independent first."""
        size = self.sweep.diagonal
        while (free := self.held & ~self.base & ~self.determined()).any():
            share = np.where(free, self.sweep.left / np.where(free, size, 1.0), -1.0)
            self.sweep.add(int(share.argmax()))
            self._update_base()

    def _update_base(self) -> None:
        self.base = np.zeros(len(self.held), dtype=bool)
        self.base[self.sweep.members] = True
        self._gains = None

    def determined(self) -> Mask:
        """Return a mask of the columns outside the base that depend linearly on it."""
        return ~self.base & self.sweep.dependent(TOLERANCE)

    def gains(self) -> Array:
        """Return the sum of squares that each column would explain in addition to the subset.

        It is 0 for columns that depend on the subset.
        """
        if self._gains is None:  # not None if the subset is that of the last call
            spanned = self.base | self.determined()
            products = self.sweep.products
            assert products is not None  # ``Residuals`` was created with products=True
            squares = np.einsum("ij,ij->j", products, products)
            self._gains = np.where(spanned, 0.0, squares / np.where(spanned, 1.0, self.sweep.left))
        return self._gains

    def losses(self, subset: Subset) -> Array:
        """Return the sum of squares that is no longer explained when each member is removed.

        It is 0 for members that other members can replace. Removing b from the base adds C_b^2 /
        A_bb to the squared error of a column. Here C are the regression coefficients of the column,
        and A is the inverse of the base's Gram matrix.
        """
        losses = np.zeros(len(self.held))
        coefs = self.sweep.coefs
        alone = np.einsum("ij,ij->i", coefs, coefs) / self.sweep.inverse.diagonal()
        losses[self.sweep.members] = np.where(self._replaceable(), 0.0, alone)
        return losses[subset]

    def _replaceable(self) -> Mask:
        """Return a mask of the base members that a member outside the base can replace."""
        size = np.sqrt(self.sweep.diagonal)
        spare = self.held & ~self.base & (size > 0)
        coefs = np.abs(self.sweep.coefs[:, spare]) * size[self.sweep.members, None] / size[spare]
        return np.asarray(np.any(coefs > TAKES_PART, axis=1))


def independent_members(W: Array, subset: Subset) -> Subset:
    """Return members that span all others, found by a pivoted Cholesky decomposition."""
    members = subset[W[subset, subset] > 0]
    if not len(members):
        return members
    size = np.sqrt(W[members, members])
    scaled = W[np.ix_(members, members)] / np.outer(size, size)
    _, order, rank, _ = dpstrf(scaled, tol=TOLERANCE)
    return members[order[:rank] - 1]
