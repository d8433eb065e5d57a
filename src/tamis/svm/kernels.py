"""Kernels, the parameters of estimators with a kernel, and the centred kernel matrix of a path."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from tamis._arrays import Array, is_real
from tamis._checks import Constraint, Constraints, integer, number, one_of
from tamis.exceptions import InvalidParameter, InvalidTable

EPS = float(np.finfo(float).eps)
TINY = 100 * float(np.finfo(float).smallest_subnormal)
GAMMA = Constraint(
    ("a number above 0", "'scale'", "'auto'"),
    lambda gamma: (
        gamma in ("scale", "auto") if isinstance(gamma, str) else is_real(gamma) and gamma > 0
    ),
    ("scale", "auto"),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel with numeric parameters.

    >>> Kernel("rbf", 0.5)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.607]])
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel values between the rows of ``X`` and of ``Y``.

        For a precomputed kernel, ``X`` itself is returned.
        """
        if self.name == "precomputed":
            return X
        if self.name == "rbf":
            exponent = self.exponent(X, Y)
            return np.exp(exponent, out=exponent)
        return self.values(X @ Y.T)

    def values(self, base: Array) -> Array:
        """Return the kernel values, given squared distances (Gaussian kernel) or inner products."""
        if self.name == "rbf":
            return np.exp(-self.gamma * base)
        if self.name == "linear":
            return base
        return power(self.gamma * base + self.coef0, self.degree)

    def exponent(self, X: Array, Y: Array) -> Array:
        """Return ``-gamma ||x - y||^2``, exactly 0 on the diagonal if ``X`` is ``Y``."""
        G = X @ Y.T
        G *= 2.0
        G -= _squares(X)[:, None]
        G -= _squares(Y)
        np.minimum(G, 0.0, out=G)
        if X is Y:
            np.fill_diagonal(G, 0.0)
        G *= self.gamma
        return G

    def diagonal(self, X: Array) -> Array:
        """Return the kernel value of each row of ``X`` with itself."""
        if self.name == "rbf":
            return np.ones(len(X))
        squares = _squares(X)
        if self.name == "linear":
            return squares
        with np.errstate(over="ignore"):  # values of distant rows may be infinite
            return np.asarray((self.gamma * squares + self.coef0) ** self.degree)


@dataclass(eq=False, repr=False)
class KernelEstimator(BaseEstimator):
    """Base class of estimators with the kernel parameters of SVC."""

    kernel: str = "rbf"
    _: KW_ONLY
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0

    _constraints: ClassVar[Constraints] = {
        "kernel": one_of("linear", "rbf", "poly", "precomputed"),
        "gamma": GAMMA,
        "degree": integer(0),
        "coef0": number(),
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _resolve(self, X: Array, gamma: Any = None, weight: Array | None = None) -> Kernel:
        """Return the kernel, with a gamma of ``"scale"`` or ``"auto"`` computed as in SVC.

        If ``weight`` is given, "scale" uses the weighted variance. SVC and SVR use the variance
        without weights, so their paths pass no weights.
        """
        name, gamma = type(self).__name__, self.gamma if gamma is None else gamma
        if self.kernel == "precomputed":
            if X.shape[0] != X.shape[1]:
                raise InvalidParameter(
                    f'{name} with kernel="precomputed" needs a square matrix of kernel values '
                    f"between the samples; got the shape {X.shape}."
                )
            return Kernel("precomputed")
        if isinstance(gamma, str):
            spread = _variance(X, weight) if gamma == "scale" and self.kernel != "linear" else 1.0
            if not np.isfinite(spread):
                raise InvalidTable(
                    f'{name} with gamma="scale" needs columns whose variance does not overflow; '
                    f"they reach {np.abs(X).max():.3g}. Scale the columns, for example by "
                    "StandardScaler()."
                )
            gamma = 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
        return Kernel(self.kernel, float(gamma), self.degree, float(self.coef0))


def _variance(X: Array, weight: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None:
            return float(X.var())
        mean = np.average(X, axis=0, weights=weight).mean()
        return float(np.average((X - mean) ** 2, axis=0, weights=weight).mean())


class Gram:
    """Centred kernel matrix of the training rows ``members``, and kernel rows of new points.

    Because ``s'x = 0`` on the whole path, adding a function of the row or of the column to the
    kernel only changes the intercept. So the kernel matrix can be centred, which makes nearly
    constant kernels usable. For a nearly constant RBF kernel, k - 1 is computed directly
    (``expm1``).

    The matrix is divided by ``unit``, a power of two near its largest entry, so that a path does
    not depend on the size of the kernel. Dividing by a power of two causes no rounding.
    """

    def __init__(self, kernel: Kernel, X: Array, members: NDArray[np.intp]) -> None:
        self.kernel, self.members = kernel, members
        self.precomputed = kernel.name == "precomputed"
        self.X = X[np.ix_(members, members)] if self.precomputed else X[members]
        self.origin = np.zeros(())
        with np.errstate(over="ignore", invalid="ignore"):
            if kernel.name in ("linear", "rbf"):
                # a shift does not change the path, and centred columns lose fewer digits
                self.origin = self.X.mean(axis=0)
                self.X = self.X - self.origin
            self.squares = np.zeros(len(members)) if self.precomputed else _squares(self.X)
            self.flat = kernel.name == "rbf" and 4 * kernel.gamma * self.squares.max() < 1e-2
            K = self._raw(self.X)
            largest = float(np.abs(K).max())
            self.means = K.mean(axis=0)
            self.mean = float(self.means.mean())
        if not np.isfinite(largest + self.mean):
            raise too_large(kernel.name)
        K -= self.means
        K -= self.means[:, None] - self.mean
        if self.precomputed:
            K = np.ascontiguousarray((K + K.T) / 2)
        size = float(np.abs(np.diagonal(K)).max())
        self.unit = 2.0 ** int(np.frexp(size)[1]) if size > 0 else 1.0
        K /= self.unit
        self.K = K
        # the error of an entry is at most the sum of the noise of its row and of its column
        own = self._rounding(np.full(len(K), largest), self.squares, self.squares)
        self.noise = (own + TINY) / self.unit

    @cached_property
    def definite(self) -> bool:
        """Whether the kernel has no negative eigenvalue beyond rounding."""
        if not self.precomputed and self.kernel.coef0 >= 0:
            return True
        try:
            np.linalg.cholesky(self.K + 32 * EPS * len(self.K) * np.eye(len(self.K)))
        except np.linalg.LinAlgError:
            return False
        return True

    @property
    def matrix(self) -> Array:
        """The centred kernel matrix, not divided by ``unit``."""
        return self.K * self.unit

    def _raw(self, X: Array) -> Array:
        """Return the kernel values between shifted rows ``X`` and the training rows."""
        return np.expm1(self.kernel.exponent(X, self.X)) if self.flat else self.kernel(X, self.X)

    @np.errstate(over="ignore", invalid="ignore")  # the bound of distant points may be infinite
    def _rounding(self, largest: Any, squares: Any, product: Any) -> Any:
        """Return a bound for each point on the rounding error of its kernel values.

        The error of a value between two points is at most the sum of their bounds. ``largest`` is
        the largest kernel value of each point, ``squares`` is its squared norm, and ``product`` is
        its norm times the largest norm of the other points. A sum of d products has a relative
        error of about sqrt(d) roundings. The exponent of the RBF kernel is a difference between
        squared norms. Centring adds four more roundings.
        """
        kernel = self.kernel
        if self.precomputed:
            return 4 * EPS * largest
        sums = (4 + np.sqrt(self.X.shape[1])) * EPS
        if kernel.name == "linear":
            return sums * product + 4 * EPS * largest
        if kernel.name == "rbf":
            exponent = 2 * kernel.gamma * sums * squares
            return exponent if self.flat else largest * exponent + 4 * EPS
        inner = kernel.gamma * product + abs(kernel.coef0)
        return sums * (kernel.degree + 1) * np.maximum(inner**kernel.degree, largest)

    def rows(self, X: Array) -> Array:
        """Return the kernel values between new points and the training rows, a row for each point.

        The values are centred, up to a constant per row that only changes the intercept.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._raw(X[:, self.members] if self.precomputed else X - self.origin)
            found = found - self.means
        if len(far := np.flatnonzero(~np.isfinite(found).all(axis=1))):
            raise too_large(self.kernel.name, f"row {far[0]} with the training rows")
        return found

    def rounding(self, X: Array, rows: Array) -> Array:
        """Return a bound on the rounding errors in the kernel row of each new point."""
        squares = 0.0 if self.precomputed else _squares(X - self.origin)
        product = np.sqrt(squares) * np.sqrt(self.squares.max())
        found = self._rounding(np.abs(rows).max(axis=1), squares, product)
        return found + 4 * EPS * np.abs(self.means).max()

    def norms(self, X: Array, rows: Array, own: Array | None = None) -> Array:
        """Return the feature-space distances of new points from the mean of the training points.

        ``rows`` are the kernel rows of the points. A precomputed kernel needs ``own``, the kernel
        value of each point with itself. Without it, the distances are infinite.
        """
        if own is None:
            if self.precomputed:
                return np.full(len(X), np.inf)
            own = self.kernel.diagonal(X - self.origin) - (1.0 if self.flat else 0.0)
        mean = rows.mean(axis=1)
        rounding = 8 * EPS * (np.abs(own) + np.abs(rows).max(axis=1) + abs(self.mean))
        return np.sqrt(np.maximum(own - 2 * mean - self.mean, 0.0) + rounding)


def too_large(kernel: str, rows: str = "these columns") -> InvalidTable:
    """Return an exception to raise if kernel values overflow."""
    return InvalidTable(
        f"The {kernel} kernel of {rows} is too large for a number. Scale the columns, for example "
        "with StandardScaler()."
    )


def power(base: Array, degree: int) -> Array:
    """Return an integer power by repeated multiplication, ten times faster than ``**``."""
    result = np.ones_like(base)
    for _ in range(degree):
        result *= base
    return result


def _squares(X: Array) -> Array:
    """Return the squared norm of each row."""
    return np.einsum("ij,ij->i", X, X)
