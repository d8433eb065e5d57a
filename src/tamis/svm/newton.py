"""NewtonSVC and NewtonSVR: machines of squared losses, exact, on a processor or a GPU."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tamis._arrays import Array, class_codes, is_int, is_real
from tamis._namespace import double, host, move, namespace, placed
from tamis.contract.elsewhere import validated
from tamis.exceptions import InvalidParameter, InvalidTarget, NotConverged
from tamis.svm.kernels import Kernel, resolve_kernel
from tamis.svm.limits import check_bounds, check_weights
from tamis.svm.machine import KERNELS
from tamis.svm.newton_solver import (
    Hinge,
    Optimum,
    SquaredLoss,
    Tube,
    kernel_matrix,
    newton,
    residual,
)

#: Error of outputs beside targets of the size of 1 from which it is worth a word.
IMPRECISE = 1e-6
#: Half width of a tube that holds all targets of the size of 1, and that can be counted with.
LARGEST_EPSILON = 1e100


class NewtonMachine(BaseEstimator):
    """What both machines share: one kernel matrix, one optimum for each output."""

    #: Whether it trains on the device that is asked for, such as a GPU.
    runs_on_device: ClassVar[bool] = True
    _parameters: ClassVar[tuple[str, ...]] = ("C",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _check(self) -> None:
        name = type(self).__name__
        if not isinstance(self.kernel, str) or self.kernel not in KERNELS:
            raise InvalidParameter(
                f"{name} needs kernel='rbf', 'linear' or 'poly', not {self.kernel!r}."
            )
        for parameter in self._parameters:
            value, zero = getattr(self, parameter), parameter == "epsilon"
            if not is_real(value) or value < 0 or (value == 0 and not zero):
                least = "of at least 0" if zero else "above 0"
                raise InvalidParameter(f"{name} needs {parameter} {least}, not {value!r}.")
        if not is_int(self.max_iter) or self.max_iter < 1:
            raise InvalidParameter(f"{name} needs max_iter of at least 1, not {self.max_iter!r}.")

    def _resolved(self, X: Any, weight: Array) -> Kernel:
        """The kernel with numbers; "scale" counts a sample by its weight."""
        gamma, equal = self.gamma, bool((weight == weight[0]).all())
        rows = None if equal else weight
        if not isinstance(X, np.ndarray):
            if equal and gamma == "scale":  # on the device: the table need not come to the host
                gamma = 1 / (X.shape[1] * (float(namespace(X).var(X)) or 1 / X.shape[1]))
            X = host(X) if gamma == "scale" else np.empty((1, X.shape[1]))
        numbers = self.kernel, gamma, self.degree, self.coef0
        return resolve_kernel(type(self).__name__, *numbers, X, rows)

    def _fit_outputs(self, X: Any, losses: Sequence[SquaredLoss], bounds: Array) -> None:
        """One optimum for each loss; attributes as those of SVC."""
        xp, rows = namespace(X), np.flatnonzero(bounds > 0)
        kept = X if len(rows) == X.shape[0] else xp.take(X, move(rows, X, exact=True), axis=0)
        self._origin = self._middle(kept)
        near = kept if self._origin is None else kept - self._origin
        K, ridge = kernel_matrix(self._kernel, near, near), move(1 / (2 * bounds[rows]), X)
        before = self._begun(len(rows), len(losses))
        found = [self._optimum(K, ridge, *both) for both in zip(losses, before, strict=True)]
        beta = xp.stack([one.beta for one in found])
        self._sides = [one.sides for one in found] if self.warm_start else None
        used = np.flatnonzero(host(xp.any(beta != 0, axis=0)))
        index = move(used, X, exact=True)
        self.support_ = rows[used]
        self.support_vectors_ = xp.take(kept, index, axis=0)
        self.dual_coef_ = xp.take(beta, index, axis=1)
        self._levels = self.intercept_ = np.array([one.intercept for one in found])
        if self._origin is not None:
            self.intercept_ = self._levels - host(beta @ (near @ self._origin))
        self.n_iter_ = max(one.n_steps for one in found)
        if not all(one.converged for one in found):
            warn(
                f"{type(self).__name__} did not come to rest in max_iter={self.max_iter} steps; "
                "raise it, or lower C.",
                NotConverged,
                stacklevel=3,
            )

    def _middle(self, X: Any) -> Any:
        """What rows of a linear kernel are measured from; multipliers that sum to 0 do not see it.

        Beside columns far from 0 the differences that matter would be lost in products.
        """
        shiftable = self.kernel == "linear" and self.fit_intercept
        return namespace(X).mean(X, axis=0) if shiftable else None

    def _begun(self, n_rows: int, n_outputs: int) -> list[Any]:
        """Active samples of the last fit, where it was of as many rows."""
        known = getattr(self, "_sides", None) if self.warm_start else None
        fits = known and len(known) == n_outputs and all(s.shape[0] == n_rows for s in known)
        return known if known and fits else [None] * n_outputs

    def _optimum(self, K: Any, ridge: Any, loss: SquaredLoss, sides: Any) -> Optimum:
        options = {"intercept": self.fit_intercept, "most_steps": self.max_iter}
        try:
            found = newton(K, ridge, loss, sides=sides, **options)
        except np.linalg.LinAlgError:
            raise InvalidParameter(
                f"{type(self).__name__} cannot solve its system: with C={self.C!r} the kernel "
                "matrix is not positive definite to double precision. Lower C, or scale the "
                "columns; a poly kernel needs coef0 of at least 0."
            ) from None
        if found.converged and (error := residual(ridge, loss, found)) > IMPRECISE:
            warn(
                f"{type(self).__name__} is right to {error:.0e} only: with C={self.C!r} the kernel "
                "is too large beside 1 / 2C for double precision. Scale the columns, or lower C.",
                NotConverged,
                stacklevel=4,
            )
        return found

    def _outputs(self, X: Any) -> Any:
        """Outputs of new rows, of shape (rows, outputs), where X is."""
        check_is_fitted(self)
        X = double(validated(self, X, reset=False))
        # a machine that was trained on a device answers for rows of the host too
        rows = move(X, self.support_vectors_) if isinstance(X, np.ndarray) else X
        both = rows, self.support_vectors_
        if self._origin is not None:
            both = rows - self._origin, self.support_vectors_ - self._origin
        found = kernel_matrix(self._kernel, *both) @ self.dual_coef_.T + move(self._levels, rows)
        return host(found) if isinstance(X, np.ndarray) else found


class NewtonSVC(ClassifierMixin, NewtonMachine):
    r"""Support vector classifier with squared hinge loss and any kernel, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, 1 - y_i f(x_i))^2

    by Newton's method on the set of samples inside the margin: a Cholesky factor for each of a few
    steps, and no tolerance. On numpy arrays and, under scikit-learn's ``array_api_dispatch``, on
    torch and CuPy arrays of any device. Several classes are trained one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Of the polynomial kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        What multiplies C for each class.
    warm_start : bool, default=False
        Whether a further ``fit`` on as many rows begins with the samples that were inside the
        margin. The optimum is the same.
    max_iter : int, default=100
        Most steps. Fewer than 20 are usual.

    Attributes
    ----------
    classes_ : array
    support_ : array of int
        Samples inside the margin.
    support_vectors_ : array
    dual_coef_ : array of shape (n_outputs, n_support)
        Signed multipliers.
    intercept_ : array of shape (n_outputs,)
    n_iter_ : int
        Steps of the output that took the most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NewtonSVC().fit(X, y).score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        max_iter: int = 100,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,) or None
            What multiplies C for each sample.

        Returns
        -------
        NewtonSVC
        """
        self._check()
        X, y = validated(self, X, y)
        X, y = placed(double(X)), host(y)
        check_classification_targets(y)
        weight = _weights(self, sample_weight, y)
        self.classes_, codes = class_codes(y)
        self._check_classes(codes, weight)
        each = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weight
        )
        if not (each > 0).all() or not np.isfinite(each).all():
            raise InvalidParameter(
                f"NewtonSVC needs class weights that are numbers above 0, not "
                f"{self.class_weight!r}."
            )
        self._kernel = self._resolved(X, weight)
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        kept = codes[weight > 0]
        losses = [Hinge(move(np.where(kept == k, 1.0, -1.0), X)) for k in positive]
        with np.errstate(over="ignore", under="ignore"):  # refused where it is no number
            bounds = self.C * weight * each[codes]
        check_bounds("NewtonSVC", bounds[weight > 0])
        self._fit_outputs(X, losses, bounds)
        return self

    def _check_classes(self, codes: NDArray[np.intp], weight: Array) -> None:
        there = np.unique(codes[weight > 0])
        if len(there) < 2 or len(there) < len(self.classes_):
            raise InvalidTarget(
                "NewtonSVC needs samples of positive weight in at least two classes, and in every "
                f"class; {len(there)} class{'es have' if len(there) != 1 else ' has'} some."
            )

    def decision_function(self, X: Any) -> Any:
        """Outputs of the machine.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) where there are more than two
        """
        found = self._outputs(X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, on the host.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        found = host(self._outputs(X))
        codes = (found[:, 0] > 0).astype(int) if found.shape[1] == 1 else found.argmax(axis=1)
        classes: NDArray[Any] = self.classes_
        return classes[codes]


class NewtonSVR(RegressorMixin, NewtonMachine):
    r"""Support vector regression with squared epsilon-insensitive loss, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, |y_i - f(x_i)| - \epsilon)^2

    as :class:`NewtonSVC` is. With ``epsilon=0`` it is the least-squares machine, kernel ridge
    regression with an intercept: one linear system.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    epsilon : float, default=0.1
        Half width of the tube in which nothing is lost.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Of the polynomial kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    warm_start : bool, default=False
        Whether a further ``fit`` on as many rows begins with the samples that were outside the
        tube. The optimum is the same.
    max_iter : int, default=100
        Most steps. Fewer than 20 are usual.

    Attributes
    ----------
    support_ : array of int
        Samples outside the tube.
    support_vectors_ : array
    dual_coef_ : array of shape (1, n_support)
        Signed multipliers.
    intercept_ : array of shape (1,)
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(NewtonSVR(epsilon=0.0).fit(X, y).score(X, y), 2)
    0.68
    """

    _parameters: ClassVar[tuple[str, ...]] = ("C", "epsilon")

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        warm_start: bool = False,
        max_iter: int = 100,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Numbers.
        sample_weight : array of shape (n_samples,) or None
            What multiplies C for each sample.

        Returns
        -------
        NewtonSVR
        """
        self._check()
        X, y = validated(self, X, y, y_numeric=True)
        X, y = placed(double(X)), host(y).astype(np.float64)
        weight = _weights(self, sample_weight, y)
        self._kernel = self._resolved(X, weight)
        units = _Units.of(y[weight > 0], shiftable=self.fit_intercept)
        target = move((y[weight > 0] - units.middle) / units.size, X)
        tube = Tube(target, min(float(self.epsilon) / units.size, LARGEST_EPSILON))
        with np.errstate(over="ignore", under="ignore"):  # refused where it is no number
            bounds = self.C * weight
        check_bounds("NewtonSVR", bounds[weight > 0])
        self._fit_outputs(X, [tube], bounds)
        self._in_units(units)
        return self

    def _in_units(self, units: "_Units") -> None:
        """Go back to the units of the targets."""
        with np.errstate(over="ignore"):
            self.dual_coef_ = self.dual_coef_ * units.size
            self.intercept_ = self.intercept_ * units.size + units.middle
            self._levels = self._levels * units.size + units.middle
        if not np.isfinite(host(self.dual_coef_)).all():
            raise InvalidTarget(
                f"NewtonSVR with C={self.C!r} needs smaller targets: its multipliers are too large "
                "for a number. Divide the targets by their standard deviation."
            )

    def predict(self, X: Any) -> Any:
        """What the machine answers for each row, where the rows are.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]


class _Units(NamedTuple):
    """Where targets are measured from, and in what: they are then of the size of 1.

    The size is a power of two, which rounds nothing.
    """

    middle: float
    size: float

    @classmethod
    def of(cls, y: Array, *, shiftable: bool) -> Self:
        """Those of some targets."""
        most = _power_of_two(float(np.abs(y).max()))
        middle = float((y / most).mean()) if shiftable else 0.0
        size = _power_of_two(float(np.abs(y / most - middle).max())) * most
        return cls(middle * most, max(size, float(np.finfo(float).tiny)))


def _power_of_two(value: float) -> float:
    return float(np.ldexp(1.0, int(np.frexp(value)[1]) - 1)) if value > 0 else 1.0


def _weights(machine: Any, sample_weight: Any, y: NDArray[Any]) -> Array:
    if sample_weight is not None and not isinstance(sample_weight, Real):
        sample_weight = host(sample_weight)
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
    check_weights(type(machine).__name__, weight)
    return np.asarray(weight, dtype=np.float64)
