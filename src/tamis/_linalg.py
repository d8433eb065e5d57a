"""Traces and determinants of sub-matrices, kept up to date as columns come and go."""

from collections.abc import Sequence

import numpy as np

from tamis._arrays import Array, Mask, Subset

#: A column whose residual variance is below this share of its variance depends on the others.
DEPENDENT = 1e-10
#: Moves after which the updates start afresh, so that rounding cannot build up.
MOVES = 20
#: Numbers in one batch of stacked matrices.
BATCH = 1 << 21


class Residuals:
    """Regression of every column on the columns of a subset, in the inner product W.

    A subset in which a column depends on the others raises ``LinAlgError``.

    ``inverse`` is the inverse of W on the subset, ``coefs`` = inverse @ W[subset, :] has the
    coefficients of all columns, ``left`` their residual variances. Moving by one column costs
    O(|S| d) instead of the O(|S|^2 d) of solving again. ``members`` are in order of entry.
    """

    def __init__(self, W: Array):
        self.W = W
        self.diagonal = W.diagonal().copy()
        self._restart(np.empty(0, dtype=np.intp))

    def move_to(self, subset: Subset) -> None:
        """Make the subset's regression the current one."""
        held, wanted = set(self.members.tolist()), set(subset.tolist())
        leaving, entering = held - wanted, sorted(wanted - held)
        if self.moves + len(leaving) + len(entering) > MOVES:
            self._restart(subset)
            return
        for column in leaving:
            self._drop(column)
        for column in entering:
            self._add(column)

    def dependent(self) -> np.ndarray:
        """Which columns the subset already determines."""
        return self.left <= DEPENDENT * self.diagonal

    def _restart(self, subset: Subset) -> None:
        rows = self.W[subset]
        check_independent(rows[:, subset])
        self.members, self.moves = subset.copy(), 0
        self.inverse = np.linalg.inv(rows[:, subset])
        self.inverse = (self.inverse + self.inverse.T) / 2
        self.coefs = self.inverse @ rows
        self.left = self.diagonal - np.einsum("ij,ij->j", self.coefs, rows)

    def _add(self, column: int) -> None:
        """Bordering: the new column is first freed of what the members explain."""
        explained, left = self.coefs[:, column].copy(), self.left[column]
        if left <= DEPENDENT * self.diagonal[column]:
            raise np.linalg.LinAlgError("a column depends on the others")
        covariance = self.W[column] - explained @ self.W[self.members]
        slope = covariance / left
        size = len(self.members)
        coefs = np.empty((size + 1, len(slope)))
        coefs[:size] = self.coefs - explained[:, None] * slope
        coefs[size] = slope
        inverse = np.empty((size + 1, size + 1))
        inverse[:size, :size] = self.inverse + explained[:, None] * (explained / left)
        inverse[size, :size] = inverse[:size, size] = -explained / left
        inverse[size, size] = 1 / left
        self.coefs, self.inverse = coefs, inverse
        self.left = self.left - slope * covariance
        self.members = np.append(self.members, column)
        self.moves += 1

    def _drop(self, column: int) -> None:
        """The inverse of bordering."""
        (place,) = np.flatnonzero(self.members == column)
        slope, pivot = self.coefs[place], self.inverse[place, place]
        stay = np.arange(len(self.members)) != place
        share = self.inverse[stay, place] / pivot
        self.left = self.left + slope**2 / pivot
        self.coefs = self.coefs[stay] - share[:, None] * slope
        self.inverse = self.inverse[stay][:, stay] - share[:, None] * (share * pivot)
        self.members = self.members[stay]
        self.moves += 1


class TraceForm:
    """J(S) = tr(W_SS^-1 M_SS), its gains, losses and a floor under the loss of many at once.

    Adding j gains m_j / w_j, the residual variances of j in M and in W after its regression on S
    in W. Removing i loses l_i = (A M_SS A)_ii / A_ii with A = W_SS^-1. Both cost far less where M
    is of low rank and known as F'F.
    """

    def __init__(self, W: Array, M: Array, F: Array | None = None):
        self.W, self.M, self.F = W, M, F
        self.state = Residuals(W)

    def traces(self, stack: np.ndarray) -> Array:
        """J of a stack of subsets of one size, -inf where W is singular."""
        W, M = blocks(self.W, stack), blocks(self.M, stack)
        good = independent(W)
        traces = np.full(len(stack), -np.inf)
        traces[good] = np.trace(np.linalg.solve(W[good], M[good]), axis1=1, axis2=2)
        return traces

    def gains(self, subset: Subset) -> Array:
        """What adding each column gains, -inf where the subset already determines it."""
        self.state.move_to(subset)
        members, coefs = self.state.members, self.state.coefs
        if self.F is not None:
            left = ((self.F - self.F[:, members] @ coefs) ** 2).sum(axis=0)
        else:
            rows = self.M[members]
            residual = coefs * (rows[:, members] @ coefs - 2 * rows)
            left = self.M.diagonal() + residual.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.state.dependent(), -np.inf, left / self.state.left)

    def losses(self, subset: Subset) -> Array:
        """What removing each member loses."""
        self.state.move_to(subset)
        A, members = self.state.inverse, self.state.members
        if self.F is not None:
            lost = ((self.F[:, members] @ A) ** 2).sum(axis=0)
        else:
            lost = ((A @ self.M[members][:, members]) * A).sum(axis=1)
        return (lost / A.diagonal())[members.argsort()]

    def floors(self, stack: np.ndarray) -> Array:
        """For each subset of a stack, numbers whose sum over any R is at most the loss of R.

        Removing R loses tr((A M A)_RR A_RR^-1). With C the correlation matrix that A has as a
        covariance matrix, this is at least the sum of l_i over R divided by the largest eigenvalue
        of C_RR, and that of C is no smaller.
        """
        A = np.linalg.inv(blocks(self.W, stack))
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        losses = np.diagonal(A @ blocks(self.M, stack) @ A, axis1=1, axis2=2) / diagonal
        scale = 1 / np.sqrt(diagonal)
        largest = np.linalg.eigvalsh(A * scale[:, :, None] * scale[:, None, :])[:, -1:]
        return losses / largest


class TraceSum:
    """A sum of trace forms and a constant for each column."""

    def __init__(self, forms: Sequence[TraceForm], per_column: float):
        self.forms, self.per_column = forms, per_column

    def values(self, subsets: Sequence[Subset]) -> Array:
        """Value of each subset; those of one size are solved together."""
        values = np.zeros(len(subsets))
        for places, stack in stacked(subsets):
            values[places] = sum(form.traces(stack) for form in self.forms)
            values[places] += self.per_column * stack.shape[1]
        return values

    def gains(self, subset: Subset) -> Array:
        """What adding each column gains."""
        return np.sum([form.gains(subset) for form in self.forms], axis=0) + self.per_column

    def losses(self, subset: Subset) -> Array:
        """What removing each member loses."""
        return np.sum([form.losses(subset) for form in self.forms], axis=0) + self.per_column

    def bounds(self, subsets: Sequence[Subset], size: int) -> Array:
        """The most that ``size`` columns of each subset can be worth.

        Whichever columns leave, they take along at least the smallest floors, and their constants;
        a monotone value never rises.
        """
        bounds = self.values(subsets)
        check_finite(bounds)
        for places, stack in stacked(subsets):
            surplus = stack.shape[1] - size
            floors = np.sum([form.floors(stack) for form in self.forms], axis=0) + self.per_column
            least = np.sort(floors, axis=1)[:, :surplus].sum(axis=1)
            bounds[places] -= np.maximum(least, 0)
        return bounds


def stacked(subsets: Sequence[Subset]) -> "list[tuple[np.ndarray, np.ndarray]]":
    """Places and stacked subsets, by size, in batches of bounded memory."""
    sizes = np.array([len(subset) for subset in subsets], dtype=np.intp)
    batches = []
    for size in np.unique(sizes[sizes > 0]):
        places = np.flatnonzero(sizes == size)
        for part in np.array_split(places, -(-len(places) * int(size) ** 2 // BATCH)):
            batches.append((part, np.stack([subsets[place] for place in part])))
    return batches


def blocks(W: Array, stack: np.ndarray) -> Array:
    """The sub-matrices of W that belong to a stack of subsets of one size."""
    return W[stack[:, :, None], stack[:, None, :]]


def independent(matrices: Array) -> Mask:
    """For each of a stack of matrices, whether no column depends on those before it."""
    try:
        factors = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.array([False])
        return np.concatenate([independent(matrix[None]) for matrix in matrices])
    left = np.diagonal(factors, axis1=1, axis2=2) ** 2
    return np.all(left > DEPENDENT * np.diagonal(matrices, axis1=1, axis2=2), axis=1)


def check_independent(matrix: Array) -> None:
    """Raise ``LinAlgError`` where a column depends on the others."""
    if not independent(matrix[None])[0]:
        raise np.linalg.LinAlgError("a column depends on the others")


def check_finite(values: Array) -> None:
    """Raise ``LinAlgError`` where a value is missing: it says nothing of the subsets inside."""
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("a column depends on the others")
