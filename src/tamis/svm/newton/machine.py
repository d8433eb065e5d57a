"""Base class of SVMs with squared losses, which are trained by Newton's method."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self, cast
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, check_parameters, integer, number, one_of
from tamis._namespace import (
    diagonal,
    double,
    host,
    is_elsewhere,
    move,
    namespace,
    placed,
    rows_taken,
    same_place,
)
from tamis._seeds import Seed, draw_seed, stream
from tamis.blocks.device_arrays import validated
from tamis.exceptions import InvalidParameter, InvalidTarget, NotConverged
from tamis.svm.inputs import check_bounds, weigh_samples
from tamis.svm.kernels import Kernel, KernelEstimator
from tamis.svm.newton.solver import Optimum, newton
from tamis.svm.newton.spaces import (
    KernelSpace,
    LandmarkSpace,
    LinearSpace,
    Space,
    SquaredLoss,
    SquaredProblem,
    kernel_matrix,
)

#: If the error of the outputs, for targets of size 1, exceeds this, a warning is issued.
IMPRECISE = 1e-6
#: If rounding of a linear kernel may cause a larger error than this in the outputs, the SVM is
#: solved for its column weights instead. The outputs must be exact to 1e-8, and the estimate of the
#: error is seldom wrong by a factor of more than 4.
ROUGH = 1e-9
#: If this error exceeds HOPELESS, the linear kernel is not tried at all, because the active samples
#: would never be found.
HOPELESS = 1e-4
#: With at least this number of rows per column, a linear SVM is always solved for its column
#: weights. For n rows and d columns, a singular value decomposition of the table takes about 6 n d²
#: operations, and a Cholesky decomposition of the kernel n³ / 3. The rule does not apply on a GPU,
#: because singular value decompositions are slow there.
FEW_COLUMNS = 10


class TargetUnits(NamedTuple):
    """Shift ``middle`` and scale ``size`` by which targets are standardised to a size of about 1.

    The scale is a power of two, so that dividing by it causes no rounding.
    """

    middle: float = 0.0
    size: float = 1.0

    @classmethod
    def of(cls, y: Array, *, shiftable: bool) -> Self:
        """Return the units of the targets ``y``. The shift is 0 unless ``shiftable``."""
        most = _power_of_two(float(np.abs(y).max()))
        middle = float((y / most).mean()) if shiftable else 0.0
        size = _power_of_two(float(np.abs(y / most - middle).max())) * most
        return cls(middle * most, max(size, float(np.finfo(float).tiny)))


def _power_of_two(value: float) -> float:
    return float(np.ldexp(1.0, int(np.frexp(value)[1]) - 1)) if value > 0 else 1.0


class PosedMachine(NamedTuple):
    """A validated training problem: the table, the loss of each output and the C of each sample."""

    X: Any
    losses: list[SquaredLoss]
    bounds: Array
    units: TargetUnits = TargetUnits()

    @property
    def rows(self) -> NDArray[np.intp]:
        """Numbers of the rows with a positive weight, which are the training rows."""
        return np.flatnonzero(self.bounds > 0)

    @property
    def kept(self) -> Any:
        """The training rows of the table."""
        return rows_taken(self.X, self.rows)

    @property
    def ridge(self) -> Any:
        """Ridge 1 / 2C of each training row, which is added to the diagonal of the kernel."""
        return move(1 / (2 * self.bounds[self.rows]), self.X)


#: The loss of each output, the sample weights that multiply C, and the units of the targets.
Losses = tuple[list[SquaredLoss], Array, TargetUnits]


@dataclass(eq=False, repr=False)
class NewtonMachine(KernelEstimator):
    """Base class of SVMs with squared losses."""

    C: float = 1.0
    _: KW_ONLY
    kernel: str = "rbf"
    fit_intercept: bool = True
    warm_start: bool = False
    max_iter: int = 100
    n_landmarks: int | None = None
    random_state: Seed = None

    #: Whether the model can be trained on a GPU or other device.
    runs_on_device: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "kernel": one_of("rbf", "linear", "poly"),
        "C": number(above=0),
        "max_iter": integer(1),
        "n_landmarks": integer(1) | NONE,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the SVM.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes, or numbers for regression.
        sample_weight : array of shape (n_samples,) or None
            Weights that multiply C.
        """
        self._fit_outputs(self._posed(X, y, sample_weight))
        return self

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> PosedMachine:
        """Validate all parameters and data, and move the table to the requested device."""
        check_parameters(self)
        name = type(self).__name__
        X, y = validated(self, X, y, y_numeric=not is_classifier(self))
        X, y = placed(double(X)), host(y)
        if sample_weight is not None and not isinstance(sample_weight, Real):
            sample_weight = host(sample_weight)
        weight = weigh_samples(name, sample_weight, y)
        losses, bounds, units = self._losses(X, y, weight)
        self._kernel = self._resolved(X, weight)
        with np.errstate(over="ignore", under="ignore"):  # check_bounds refuses overflow
            bounds = self.C * bounds
        check_bounds(name, bounds[weight > 0])
        return PosedMachine(X, losses, bounds, units)

    @abstractmethod
    def _losses(self, X: Any, y: NDArray[Any], weight: Array) -> Losses:
        """Return the loss of each output, the weights that multiply C, and the target units.

        The losses include only the rows with a positive weight.
        """

    def _resolved(self, X: Any, weight: Array) -> Kernel:
        """Return the kernel with a numeric gamma. "scale" uses the weighted variance."""
        gamma, equal = self.gamma, bool((weight == weight[0]).all())
        rows = None if equal else weight
        if not isinstance(X, np.ndarray):
            if equal and gamma == "scale":  # computed on the device, without a copy to the host
                gamma = 1 / (X.shape[1] * (float(namespace(X).var(X)) or 1 / X.shape[1]))
            X = host(X) if gamma == "scale" else np.empty((1, X.shape[1]))
        return self._resolve(X, gamma, rows)

    def _fit_outputs(self, posed: PosedMachine) -> None:
        """Train each output, and set the fitted attributes."""
        X, rows, kept = posed.X, posed.rows, posed.kept
        xp, landmarks = namespace(X), self._landmarks(len(rows))
        self._origin = self._middle(kept, landmarks)
        near = kept if self._origin is None else kept - self._origin
        ridge = posed.ridge
        space = self._space(near, ridge, landmarks)
        problems = [SquaredProblem(ridge, loss, self.fit_intercept) for loss in posed.losses]
        starts = zip(problems, self._starts(len(rows), len(problems)), strict=True)
        found = [self._optimum(space, near, problem, sides) for problem, sides in starts]
        self._sides = [one.sides for one in found] if self.warm_start else None
        solved = zip(found, problems, strict=True)
        beta = xp.stack([o.space.multipliers(p, o.sides, o.point) for o, p in solved])
        coef = self._column_weights(found, beta, near)
        used = landmarks
        if used is None:
            used = np.flatnonzero(host(xp.any(beta != 0, axis=0)))
            beta = xp.take(beta, move(used, X, exact=True), axis=1)
        self.support_ = rows[used]
        self.support_vectors_ = xp.take(kept, move(used, X, exact=True), axis=0)  # a copy
        levels = np.array([one.point.intercept for one in found])
        shift = 0.0 if self._origin is None else host(coef @ self._origin)
        size, middle = posed.units.size, posed.units.middle
        with np.errstate(over="ignore"):
            self.dual_coef_ = beta * size
            self._coef = None if coef is None else coef * size
            self._levels = levels * size + middle
            self.intercept_ = (levels - shift) * size + middle
        self.n_iter_ = max(one.n_steps for one in found)
        if not all(one.converged for one in found):
            warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} steps; "
                "raise it, or lower C.",
                NotConverged,
                stacklevel=3,
            )
        if not np.isfinite(host(self.dual_coef_)).all():
            raise InvalidTarget(
                f"{type(self).__name__} with C={self.C!r} needs smaller targets: its multipliers "
                "are too large for a number. Divide the targets by their standard deviation."
            )

    def _landmarks(self, n_rows: int) -> NDArray[np.intp] | None:
        """Draw the numbers of the landmark rows, sorted. None means that all rows are used."""
        if self.n_landmarks is None or self.n_landmarks >= n_rows:
            return None
        draw = stream(draw_seed(self.random_state), "landmarks")
        return np.sort(draw.choice(n_rows, self.n_landmarks, replace=False))

    def _space(self, X: Any, ridge: Any, landmarks: NDArray[np.intp] | None) -> Space:
        n, d = X.shape
        linear = self.kernel == "linear"
        few = n >= FEW_COLUMNS * d and not is_elsewhere(X)
        if linear and landmarks is not None:
            own = rows_taken(X, landmarks)
            # the origin is the mean only up to rounding, which matters for columns far from 0
            own = own if self._origin is None else own - namespace(X).mean(own, axis=0)
            return LinearSpace(X, own)
        if linear and few:
            return LinearSpace(X)
        if landmarks is not None:
            try:
                return LandmarkSpace(self._kernel, X, landmarks)
            except np.linalg.LinAlgError:
                raise self._indefinite() from None
        K = kernel_matrix(self._kernel, X, X)
        if self._origin is not None:
            # centred rows sum to 0, so K + ridge is nearly singular in the direction of constants.
            # Multipliers sum to 0, so adding a constant to K does not change them.
            K += float(namespace(K).mean(diagonal(K))) / n
        space = KernelSpace(K)
        # multipliers are about 2C if the classes are not linearly separable
        hopeless = linear and n > d and space.rounding(1 / ridge) > HOPELESS
        return LinearSpace(X) if hopeless else space

    def _column_weights(self, found: list[Optimum], beta: Any, near: Any) -> Any:
        """Return the column weights of a linear SVM, of shape (outputs, columns).

        Return None for any other kernel.
        """
        if self.kernel != "linear":
            return None
        return namespace(near).stack(
            [
                one.space.columns(one.point.beta)
                if isinstance(one.space, LinearSpace)
                else beta[k, :] @ near
                for k, one in enumerate(found)
            ]
        )

    @property
    def coef_(self) -> Array:
        """Column weights of shape (n_outputs, n_features). Only for kernel="linear"."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists with kernel='linear' only")
        check_is_fitted(self)
        return host(self._coef)

    def _middle(self, X: Any, landmarks: NDArray[np.intp] | None) -> Any:
        """Return the mean row, which is subtracted from all rows if the kernel is linear.

        Return None for other kernels and without an intercept. The subtraction does not change the
        result in exact arithmetic. Without it, products of columns far from 0 would lose digits.
        """
        if self.kernel != "linear" or not self.fit_intercept:
            return None
        return namespace(X).mean(X if landmarks is None else rows_taken(X, landmarks), axis=0)

    def _starts(self, n_rows: int, n_outputs: int) -> list[Any]:
        """Return the active samples of each output to start with, or None to start from scratch.

        With ``warm_start``, the active samples of the last fit are used if the number of rows is
        the same.
        """
        known = getattr(self, "_sides", None) if self.warm_start else None
        fits = known and len(known) == n_outputs and all(s.shape[0] == n_rows for s in known)
        return known if known and fits else [None] * n_outputs

    def _optimum(self, space: Space, near: Any, problem: SquaredProblem, sides: Any) -> Optimum:
        """Find the optimum of one output.

        If rounding of a linear kernel is too large, the SVM is solved for its column weights.
        """
        found, linear = None, self.kernel == "linear" and isinstance(space, KernelSpace)
        try:
            found = newton(space, problem, sides=sides, most_steps=self.max_iter)
        except np.linalg.LinAlgError:
            if not linear:
                raise self._indefinite() from None
        if found is None:
            found = newton(LinearSpace(near), problem, sides=sides, most_steps=self.max_iter)
        elif linear and cast(KernelSpace, space).rounding(found.point.beta) > ROUGH:
            steps, sides = found.n_steps, found.sides
            found = newton(LinearSpace(near), problem, sides=sides, most_steps=self.max_iter)
            found = found._replace(n_steps=found.n_steps + steps)
        if found.converged:
            self._warn_of_error(found.space.error(problem, found.sides, found.point))
        return found

    def _warn_of_error(self, error: float) -> None:
        if error > IMPRECISE:
            warn(
                f"{type(self).__name__} has an error of {error:.0e}: with C={self.C!r} the kernel "
                "is too large compared with 1 / 2C for double precision. Scale the columns, or "
                "lower C.",
                NotConverged,
                stacklevel=5,
            )

    def _indefinite(self) -> InvalidParameter:
        return InvalidParameter(
            f"{type(self).__name__} cannot solve its system: with C={self.C!r} the kernel "
            "matrix is not positive definite to double precision. Lower C, or scale the "
            "columns; a poly kernel needs coef0 of at least 0."
        )

    def _outputs(self, X: Any) -> Any:
        """Return the outputs of new rows, of shape (rows, outputs), on the device of ``X``."""
        check_is_fitted(self)
        X = double(validated(self, X, reset=False))
        # the rows may be on a different device from the training rows
        near = same_place(X, self.support_vectors_)
        rows = X if near else move(host(X), self.support_vectors_)
        if self._coef is None:
            products = kernel_matrix(self._kernel, rows, self.support_vectors_) @ self.dual_coef_.T
        else:
            products = (rows if self._origin is None else rows - self._origin) @ self._coef.T
        found = products + move(self._levels, rows)
        return found if near else move(host(found), X)
