"""What the paths of classifiers and regressors share: a range of C, and a word on their quality."""

from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified
from tamis.svm.kernels import check_single, resolve_kernel
from tamis.svm.limits import FARTHEST_OUTPUT
from tamis.svm.path.follow import ACCEPTED, SolutionPath

RANGE = (2.0**-8, 2.0**9)


class RegularizationPath(BaseEstimator):
    """Solutions for all C of a range; ``kernel`` and ``lambda_range`` are parameters of all."""

    kernel: str
    lambda_range: tuple[float, float]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _lambda(self, C: float) -> float:
        low, high = self.lambda_range
        sound = isinstance(C, int | float | np.number) and 0 < C < np.inf
        if not (sound and low * (1 - 1e-9) <= 1 / C <= high * (1 + 1e-9)):
            raise InvalidParameter(
                f"{type(self).__name__} knows C from {1 / high:.6g} to {1 / low:.6g}; got {C!r}. "
                "Fit with another lambda_range (lambda = 1 / C)."
            )
        return 1.0 / C

    def _rows(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        return checked_rows(self, X)

    def _vouch(self, paths: list[SolutionPath], definite: bool) -> None:
        """Keep the quality of the paths, and warn where it is not what is promised."""
        self.violation_ = max(p.violation for p in paths)
        self.n_repairs_ = sum(p.n_repairs for p in paths)
        reached = max(p.reached for p in paths)
        doubt = ""
        if not self.violation_ <= ACCEPTED or reached > self.lambda_range[0]:  # nor if it is NaN
            doubt = (
                f"{type(self).__name__} reached lambda = {reached:.4g} with a violation of the "
                f"optimality conditions of {self.violation_:.1e} lambda; the path below is not "
                "vouched for. Scale the columns, or use GridC."
            )
        elif not definite:
            doubt = (
                f"{type(self).__name__} has a kernel with negative eigenvalues: the path satisfies "
                "the optimality conditions, which others may do better. Use a positive definite "
                "kernel, such as poly with coef0 >= 0."
            )
        if doubt:
            warn(doubt, NotCertified, stacklevel=3)


def checked(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
    """Finite float64 ``X`` and one-dimensional ``y``, checked by scikit-learn."""
    with np.errstate(invalid="ignore"):  # it looks for infinity by a sum, which may overflow
        X, y = validate_data(estimator, X, y, dtype=np.float64)
    return X, y


def checked_rows(estimator: BaseEstimator, X: Any) -> Array:
    """New rows for a fitted estimator."""
    with np.errstate(invalid="ignore"):
        rows: Array = validate_data(estimator, X, dtype=np.float64, reset=False)
    return rows


def checked_numbers(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, Array]:
    """As :func:`checked`, with a target of numbers."""
    X, y = checked(estimator, X, y)
    return X, as_target(estimator, y)


def as_target(estimator: BaseEstimator, y: NDArray[Any]) -> Array:
    """The target as numbers."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTarget(
            f"{type(estimator).__name__} needs a target of numbers; y holds others, such as "
            f"{str(np.asarray(y).flat[0])!r}. For classes use SVCPath or SVCPathCV."
        ) from None
    if (largest := float(np.abs(numbers).max())) > FARTHEST_OUTPUT:
        raise InvalidTarget(
            f"{type(estimator).__name__} needs a target whose differences are numbers, up to "
            f"{FARTHEST_OUTPUT:.0e}; y reaches {largest:.3g}. Scale it."
        )
    return numbers


def gammas_of(gamma: Any) -> list[Any]:
    """The members of a grid of gammas; one that is none is its only member."""
    several = not isinstance(gamma, str) and np.ndim(gamma) > 0
    return list(gamma) if several else [gamma]


def check_gammas(name: str, gamma: Any) -> None:
    """Refuse a grid of gammas without members."""
    if not gammas_of(gamma):
        raise InvalidParameter(f"{name} needs at least one gamma, and got an empty list.")


def check_refit(search: Any, X: Array) -> None:
    """Refuse before any work what the machine with the best C could not be trained on."""
    name = type(search).__name__
    for gamma in gammas_of(search.gamma):
        kernel = resolve_kernel(name, search.kernel, gamma, search.degree, search.coef0, X)
        check_single(name, kernel, X, ", or write refit=False")


def lambdas_of(search: Any) -> tuple[float, float]:
    """The range of lambda that a search is to follow, given as it is or as a range of C."""
    name, given = type(search).__name__, search.C_range
    if given is None:
        check_range(name, search.lambda_range)
        low, high = search.lambda_range
        return low, high
    if search.lambda_range != RANGE:
        raise InvalidParameter(
            f"{name} needs C_range or lambda_range (lambda = 1 / C), not both; got C_range="
            f"{given!r} and lambda_range={search.lambda_range!r}."
        )
    if not _rising(given):
        raise InvalidParameter(
            f"{name} needs C_range = (smallest, largest) with 0 < smallest < largest; got "
            f"{given!r}."
        )
    return 1.0 / given[1], 1.0 / given[0]


def check_range(name: str, lambda_range: Any) -> None:
    """Refuse a range that is not two rising positive numbers."""
    if not _rising(lambda_range):
        raise InvalidParameter(
            f"{name} needs lambda_range = (smallest, largest) with 0 < smallest < largest, where "
            f"lambda = 1 / C; got {lambda_range!r}."
        )


def _rising(given: Any) -> bool:
    try:
        low, high = given
        return bool(0 < low < high < np.inf and 1 / low < np.inf)
    except (TypeError, ValueError):
        return False
