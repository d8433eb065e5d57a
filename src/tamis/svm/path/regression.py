"""The path of support vector regression: two variables a sample, above and below the tube."""

from dataclasses import dataclass

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import InvalidTable
from tamis.svm.curves.bounds import bound_errors
from tamis.svm.curves.errors import ErrorPieces, error_pieces
from tamis.svm.kernels import Gram, Kernel
from tamis.svm.path.follow import SolutionPath, follow
from tamis.svm.path.programme import QuadraticProgramme

# Half-width that a tube of none is given, relative to the target: less than the path is exact to.
THINNEST = 1e-10


@dataclass(frozen=True)
class TubePath:
    """Path of a regression on a training set."""

    n_samples: int
    gram: Gram
    solution: SolutionPath
    shift: float  # taken from the target before

    def predict(self, X: Array, lam: float) -> Array:
        """Predictions at lambda."""
        w, b = self.solution.weights(lam)
        with np.errstate(over="ignore", invalid="ignore"):
            found = (self.gram.rows(X) @ w + b) / lam + self.shift
        if len(far := np.flatnonzero(~np.isfinite(found))):
            raise InvalidTable(
                f"The prediction for row {far[0]} at C = {1 / lam:.3g} is too large for a number. "
                "Scale the columns, for example by StandardScaler(), and the target."
            )
        return np.asarray(found)

    def dual_coef(self, lam: float) -> Array:
        """Coefficients of all samples."""
        coef = np.zeros(self.n_samples)
        coef[self.gram.members] = self.solution.weights(lam)[0] / lam
        return coef

    def errors(
        self,
        X: Array,
        y: Array,
        scoring: str,
        own: Array | None = None,
        weight: Array | None = None,
    ) -> ErrorPieces:
        """Mean error on new points along the path, and how far it may be from the truth.

        ``own`` is the kernel of the points with themselves, where it is precomputed, ``weight``
        what each point counts in the mean.
        """
        rows = self.gram.rows(X)
        found = self.solution.outputs(rows)
        bounds = bound_errors(self.solution, found, self.gram, X, rows, own)
        outputs = bounds.bracketed(np.ones(len(bounds.zone), bool))
        return error_pieces(outputs, y - self.shift, scoring, weight)


def tube_path(
    kernel: Kernel,
    X: Array,
    y: Array,
    bounds: Array,
    epsilon: float,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> TubePath:
    """Follow the path of a regression; samples with a bound of 0 do not take part."""
    members = np.flatnonzero(bounds > 0)
    gram, y, bounds = Gram(kernel, X, members), y[members], bounds[members]
    # the intercept takes any shift of y; a small |y| keeps the linear term well scaled
    shift = float(np.median(y))
    y, n = y - shift, len(y)
    # without a tube the two variables of a sample could rise together for ever
    width = max(epsilon, THINNEST * float(np.abs(y).max()))
    programme = QuadraticProgramme(
        gram.K, np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n), np.tile(bounds, 2),
        np.concatenate([y - width, -y - width]), gram.noise, unit=gram.unit, tilt=width - epsilon,
        even=bool((bounds == bounds[0]).all()), bracketed=bracketed,
    )  # fmt: skip
    return TubePath(len(X), gram, follow(programme, np.zeros(2 * n), lambda_range), shift)
