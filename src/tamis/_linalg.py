"""Regressions between columns, traces of sub-matrices, and correlations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis._arrays import Array, Mask, Subset, column_blocks, scaled_columns
from tamis._sparse import is_sparse

#: A column is treated as linearly dependent on others if its residual variance is below this share
#: of its variance. Rounding errors in sums over thousands of columns and rows are about 1e-13.
DEPENDENT = 1e-10
#: After this number of updates, the regression is solved from scratch, so that rounding errors do
#: not accumulate. Solving it takes only a small part of the run time.
MOVES = 20
#: Number of entries in a batch of stacked matrices (16 megabytes). Solving a batch needs several
#: times this memory.
BATCH = 1 << 21


class Residuals:
    r"""Regression of every column on the columns of a subset S, for the covariance matrix W.

    .. math:: A = W_{SS}^{-1}, \quad C = A W_{S\cdot}, \quad R = W - W_{\cdot S} C

    ``inverse`` is A, ``coefs`` is C, and ``left`` is the diagonal of R, the residual variances.
    ``products`` is the whole matrix R, if requested. ``members`` is S in order of entry. For d
    columns, adding or removing a column with the sweep operator (Goodnight 1979) costs O(|S| d), or
    O(d^2) with ``products``. Solving from scratch would cost O(|S|^2 d). A subset in which a column
    depends linearly on the others raises ``LinAlgError``.
    """

    def __init__(self, W: Array, *, products: bool = False):
        self.W = W
        self.diagonal = W.diagonal().copy()
        self.products: Array | None = W.copy() if products else None
        self.members, self.moves = np.empty(0, dtype=np.intp), 0
        self.inverse: Array = np.empty((0, 0))
        self.coefs: Array = np.empty((0, len(W)))
        self.left = self.diagonal.copy()

    def move_to(self, subset: Subset) -> None:
        """Change the regression to another subset."""
        held, wanted = np.zeros((2, len(self.W)), dtype=bool)
        held[self.members] = wanted[subset] = True
        moved = (held ^ wanted).nonzero()[0]
        if self.moves + len(moved) > MOVES:
            self.restart(subset)
            return
        for column in moved[held[moved]]:
            self.drop(column)
        for column in moved[wanted[moved]]:
            self.add(column)

    def dependent(self, share: float = DEPENDENT) -> Mask:
        """Return a mask of the columns that depend linearly on the subset."""
        return self.left <= share * self.diagonal

    def restart(self, subset: Subset) -> None:
        """Solve the regression of a subset from scratch, with members in the given order."""
        rows = self.W[subset]
        if not independent(rows[:, subset][None])[0]:
            raise np.linalg.LinAlgError("a column depends on the others")
        self.members, self.moves = subset.copy(), 0
        inverse = np.linalg.inv(rows[:, subset])
        self.inverse = np.asarray((inverse + inverse.T) / 2, dtype=float)
        self.coefs = self.inverse @ rows
        self.left = self.diagonal - np.einsum("ij,ij->j", self.coefs, rows)
        if self.products is not None:
            self.products = self.W - rows.T @ self.coefs
            self.products[subset] = self.products[:, subset] = 0

    def add(self, column: int) -> None:
        """Add a column to the subset."""
        explained, left = self.coefs[:, column].copy(), self.left[column]
        if left <= DEPENDENT * self.diagonal[column]:
            raise np.linalg.LinAlgError("a column depends on the others")
        if self.products is None:
            covariance = self.W[column] - explained @ self.W[self.members]
        else:
            covariance = self.products[column].copy()
        slope = covariance / left
        size = len(self.members)
        coefs = np.empty((size + 1, len(slope)))
        np.multiply(explained[:, None], slope, out=coefs[:size])
        np.subtract(self.coefs, coefs[:size], out=coefs[:size])
        coefs[size] = slope
        inverse = np.empty((size + 1, size + 1))
        inverse[:size, :size] = self.inverse + explained[:, None] * (explained / left)
        inverse[size, :size] = inverse[:size, size] = -explained / left
        inverse[size, size] = 1 / left
        self.coefs, self.inverse = coefs, inverse
        self.left = self.left - slope * covariance
        if self.products is not None:
            self.products -= np.outer(slope, covariance)
            self.products[column] = self.products[:, column] = 0
        self.members = np.concatenate([self.members, [column]])
        self.moves += 1

    def drop(self, column: int) -> None:
        """Remove a column from the subset."""
        index = int((self.members == column).argmax())
        slope, pivot = self.coefs[index], self.inverse[index, index]
        stay = np.arange(len(self.members)) != index
        share = self.inverse[stay, index] / pivot
        self.left = self.left + slope**2 / pivot
        if self.products is not None:
            self.products += np.outer(slope, slope / pivot)
            self.products[self.members[stay]] = self.products[:, self.members[stay]] = 0
        self.coefs = self.coefs[stay] - share[:, None] * slope
        self.inverse = self.inverse[stay][:, stay] - share[:, None] * (share * pivot)
        self.members = self.members[stay]
        self.moves += 1


class TraceForm:
    """The criterion J(S) = tr(W_SS^-1 M_SS), its gains and losses, and lower bounds for losses.

    To compute the gain of adding column j, this column is regressed on the columns of S, with W as
    covariance matrix. The gain is the variance of the residual under M divided by its variance
    under W. The loss of removing column i is l_i = (A M_SS A)_ii / A_ii with A = W_SS^-1. Gains and
    losses are much cheaper to compute if M has low rank and is given as a matrix F with M = F'F.
    """

    def __init__(self, W: Array, M: Array | None = None, *, F: Array | None = None):
        self.W, self.M, self.F = W, M, F
        self.state = Residuals(W)

    def met(self, stack: np.ndarray) -> Array:
        """Return the sub-matrices of M for a stack of subsets of the same size."""
        if self.F is None:
            assert self.M is not None
            return blocks(self.M, stack)
        factors = self.F.T[stack]
        return factors @ factors.swapaxes(1, 2)

    def traces(self, stack: np.ndarray) -> Array:
        """Return J for a stack of subsets of the same size, or -inf if W_SS is singular."""
        W = blocks(self.W, stack)
        good = independent(W)
        traces = np.full(len(stack), -np.inf)
        solved = np.linalg.solve(W[good], self.met(stack[good]))
        traces[good] = np.trace(solved, axis1=1, axis2=2)
        return traces

    def gains(self, subset: Subset) -> Array:
        """Return the gain of adding each column, or -inf if it depends linearly on the subset."""
        self.state.move_to(subset)
        members, coefs = self.state.members, self.state.coefs
        if self.F is not None:
            left = ((self.F - self.F[:, members] @ coefs) ** 2).sum(axis=0)
        else:
            assert self.M is not None
            rows = self.M[members]
            residual = coefs * (rows[:, members] @ coefs - 2 * rows)
            left = self.M.diagonal() + residual.sum(axis=0)
        gains = np.full(len(left), -np.inf)
        return np.divide(left, self.state.left, out=gains, where=~self.state.dependent())

    def losses(self, subset: Subset) -> Array:
        """Return the loss of removing each member."""
        self.state.move_to(subset)
        A, members = self.state.inverse, self.state.members
        if self.F is not None:
            lost = ((self.F[:, members] @ A) ** 2).sum(axis=0)
        else:
            assert self.M is not None
            lost = ((A @ self.M[members][:, members]) * A).sum(axis=1)
        return (lost / A.diagonal())[members.argsort()]

    def floors(self, stack: np.ndarray) -> Array:
        """Return, for each subset, a number per member that bounds losses from below.

        The loss of removing a set R of members is at least the sum of their numbers.

        Proof: this loss is tr((A M A)_RR A_RR^-1). Let C be the correlation matrix that belongs to
        the covariance matrix A. The loss is at least the sum of l_i over R divided by the largest
        eigenvalue of C_RR, and this eigenvalue is at most the largest eigenvalue of C.
        """
        A = np.linalg.inv(blocks(self.W, stack))
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        losses = np.diagonal(A @ self.met(stack) @ A, axis1=1, axis2=2) / diagonal
        scale = 1 / np.sqrt(diagonal)
        largest = np.linalg.eigvalsh(A * scale[:, :, None] * scale[:, None, :])[:, -1:]
        return losses / largest


class TraceSum:
    """A sum of trace forms, plus a constant for each column."""

    def __init__(self, forms: Sequence[TraceForm], per_column: float):
        self.forms, self.per_column = forms, per_column

    def values(self, subsets: Sequence[Subset]) -> Array:
        """Return the value of each subset. Subsets of the same size are solved together."""
        values = np.zeros(len(subsets))
        for indices, stack in stacked(subsets):
            values[indices] = sum(form.traces(stack) for form in self.forms)
            values[indices] += self.per_column * stack.shape[1]
        return values

    def gains(self, subset: Subset) -> Array:
        """Return the gain of adding each column."""
        gains = self.forms[0].gains(subset)
        for form in self.forms[1:]:
            gains = gains + form.gains(subset)
        return gains + self.per_column

    def losses(self, subset: Subset) -> Array:
        """Return the loss of removing each member."""
        losses = self.forms[0].losses(subset)
        for form in self.forms[1:]:
            losses = losses + form.losses(subset)
        return losses + self.per_column

    def bounds(self, subsets: Sequence[Subset], size: int) -> Array:
        """Return, for each subset, an upper bound for the value of any ``size`` of its columns.

        Each column has a lower bound for the loss of its removal: its floors (see
        :meth:`TraceForm.floors`) plus its constant. The upper bound is the value of the subset
        minus the smallest of these lower bounds, summed over the number of columns to remove.
        """
        bounds = self.values(subsets)
        check_finite(bounds)
        for indices, stack in stacked(subsets):
            surplus = stack.shape[1] - size
            floors = np.sum([form.floors(stack) for form in self.forms], axis=0) + self.per_column
            least = np.sort(floors, axis=1)[:, :surplus].sum(axis=1)
            bounds[indices] -= np.maximum(least, 0)
        return bounds


def stacked(subsets: Sequence[Subset]) -> "list[tuple[np.ndarray, np.ndarray]]":
    """Return batches of subsets of the same size, each with the indices of its subsets.

    The memory of a batch is limited.
    """
    sizes = np.array([len(subset) for subset in subsets], dtype=np.intp)
    batches = []
    for size in np.unique(sizes[sizes > 0]):
        indices = np.flatnonzero(sizes == size)
        together = max(1, BATCH // int(size) ** 2)  # a single matrix may exceed the limit
        for first in range(0, len(indices), together):
            part = indices[first : first + together]
            batches.append((part, np.stack([subsets[index] for index in part])))
    return batches


def blocks(W: Array, stack: np.ndarray) -> Array:
    """Return the sub-matrices of W for a stack of subsets of the same size."""
    return W[stack[:, :, None], stack[:, None, :]]


def independent(matrices: Array) -> Mask:
    """Return, for each matrix of a stack, whether its columns are linearly independent."""
    try:
        factors = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.array([False])
        return np.concatenate([independent(matrix[None]) for matrix in matrices])
    left = np.diagonal(factors, axis1=1, axis2=2) ** 2
    return np.all(left > DEPENDENT * np.diagonal(matrices, axis1=1, axis2=2), axis=1)


def check_finite(values: Array) -> None:
    """Raise ``LinAlgError`` if a value is not finite, because it cannot be used as a bound."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("a column depends on the others")


def column_correlations(A: Any, B: Any) -> Array:
    """Return the absolute correlation between each column of A and each column of B.

    A correlation is computed from the rows in which both values are known. It is NaN if a column is
    constant in these rows, or if there are fewer than three such rows (two points always lie on a
    line). B may be large or sparse, because it is read block by block.

    >>> A = np.array([[0.0, 5], [1, 5], [2, 5], [np.nan, 5]])
    >>> column_correlations(A, np.array([[1.0], [3], [2], [9]])).round(3).tolist()
    [[0.5], [nan]]
    """
    A = np.asarray(A.toarray() if is_sparse(A) else A)
    own = scaled_columns(A)[0]
    if is_sparse(B):  # the columns of A are centred, so the means of B cancel
        mean = np.asarray(B.mean(axis=0)).ravel()
        variance = np.asarray(B.multiply(B).mean(axis=0)).ravel() - mean**2
        deviation = np.sqrt(np.maximum(variance, 0))
        deviation[deviation <= DEPENDENT * np.abs(mean)] = np.nan
        product: Array = np.asarray((B.T @ own).T) / len(A) / deviation
        product[~own.any(axis=0)] = np.nan
        return np.minimum(np.abs(product), 1.0)
    found = np.empty((A.shape[1], B.shape[1]))
    for block in column_blocks(*B.shape):
        found[:, block] = _scaled_correlations(own, scaled_columns(B[:, block])[0])
    return found


def _scaled_correlations(A: Array, B: Array) -> Array:
    """Return the absolute correlations between columns with mean 0 and standard deviation 1."""
    in_A, in_B = ~np.isnan(A), ~np.isnan(B)
    if in_A.all() and in_B.all():
        r: Array = np.abs(A.T @ B) / len(A)
        known = np.outer(A.any(axis=0), B.any(axis=0))
    else:
        in_A, in_B = in_A.astype(float), in_B.astype(float)
        A, B = np.nan_to_num(A), np.nan_to_num(B)
        n = np.maximum(in_A.T @ in_B, 1.0)
        sum_A, sum_B = A.T @ in_B, in_A.T @ B
        squares = ((A**2).T @ in_B - sum_A**2 / n) * (in_A.T @ B**2 - sum_B**2 / n)
        known = (squares > (DEPENDENT * n) ** 2) & (n > 2)
        r = np.abs(A.T @ B - sum_A * sum_B / n) / np.sqrt(np.where(known, squares, 1.0))
    return np.where(known, np.minimum(r, 1.0), np.nan)
