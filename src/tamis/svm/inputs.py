"""Validation of X, y, weights and ranges, and limits of the numbers that SVMs are computed with.

Rows far off have outputs, errors and bounds on errors whose squares or products overflow, and what
is infinite becomes NaN with the first 0 it meets. Nothing is infinite here instead: what is beyond
a limit counts as the limit, and so does NaN. A bound that reaches its limit says that nothing is
known.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tamis._arrays import Array, class_codes
from tamis._checks import Constraint, check_parameters
from tamis.exceptions import InvalidParameter, InvalidTarget, PathTooLarge
from tamis.validation.splits import MANY_CLASSES

#: Outputs: with what rounding and doubt add they stay numbers.
FARTHEST_OUTPUT = 1e300
#: Bounds on errors of outputs, more than lies between any two outputs.
FARTHEST_DOUBT = 1e304
#: Errors that are squared: twice the largest target, and millions of such squares have a sum.
FARTHEST_SQUARED = 4e150
#: Weights of samples: the sum of many, times a kernel value or two, is a number.
LARGEST_WEIGHT = 1e250
#: Bytes that a path holds for the square of its rows: the kernel matrix, its centred copy and the
#: rows of the test fold.
KERNEL_BYTES = 24.0
#: Rows whose kernel matrix takes about 1 GB.
MAX_SAMPLES = 12_000

#: Lambda = 1 / C that is followed by default.
RANGE = (2.0**-8, 2.0**9)


def _rises(ends: Any) -> bool:
    try:
        low, high = ends
        return bool(0 < low < high < np.inf and 1 / low < np.inf)
    except (TypeError, ValueError):
        return False


#: The two ends of a range.
RISING = Constraint(("a pair of rising numbers above 0",), _rises)


def check_rows(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
    """Check the parameters; return finite float64 ``X`` and one-dimensional ``y``."""
    check_parameters(estimator)
    with np.errstate(invalid="ignore"):  # it looks for infinity by a sum, which may overflow
        X, y = validate_data(estimator, X, y, dtype=np.float64)
    return X, y


def check_new_rows(estimator: BaseEstimator, X: Any) -> Array:
    """Return finite float64 rows for a fitted estimator; refuse one that is not fitted."""
    check_is_fitted(estimator)
    with np.errstate(invalid="ignore"):
        rows: Array = validate_data(estimator, X, dtype=np.float64, reset=False)
    return rows


def check_size(name: str, n_samples: int) -> None:
    """Refuse more samples than a path can hold."""
    if n_samples > MAX_SAMPLES:
        raise PathTooLarge(
            f"{name} keeps the kernel matrix and follows every sample, which is possible up to "
            f"{MAX_SAMPLES} samples; got {n_samples}. Use GridC(step=1.0, refine=3), a grid over C "
            "with refinement around its best point."
        )


def check_numbers(name: str, y: NDArray[Any]) -> Array:
    """Return a numeric target as floats."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTarget(
            f"{name} needs a target of numbers; y holds others, such as "
            f"{str(np.asarray(y).flat[0])!r}. For classes use SVCPath or SVCPathCV."
        ) from None
    if (largest := float(np.abs(numbers).max())) > FARTHEST_OUTPUT:
        raise InvalidTarget(
            f"{name} needs a target whose differences are numbers, up to {FARTHEST_OUTPUT:.0e}; y "
            f"reaches {largest:.3g}. Scale it."
        )
    return numbers


def encode_classes(name: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes and the number of each sample's class; one class cannot be separated."""
    # whether large numbers are whole is looked at by a cast
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        check_classification_targets(y)
    classes, target = class_codes(y)
    if len(classes) < 2:
        raise InvalidTarget(
            f"{name} needs samples of at least two classes; y has 1 class, {classes[0]!r}."
        )
    return classes, target


def weigh_samples(name: str, sample_weight: Any, X: Any) -> Array:
    """Return the weights of the samples; 1 each if there are none."""
    return check_weights(name, _check_sample_weight(sample_weight, X, dtype=np.float64))


def check_weights(name: str, weight: Array) -> Array:
    """Return weights of samples; refuse negative ones, and those too large to be added up."""
    if (weight < 0).any():
        raise InvalidParameter(f"{name} needs sample weights that are not negative.")
    if (largest := float(weight.max(initial=0.0))) > LARGEST_WEIGHT:
        raise InvalidParameter(
            f"{name} needs sample weights up to {LARGEST_WEIGHT:.0e}, times those of their "
            f"classes; they reach {largest:.3g}. Divide them by a number: they multiply C."
        )
    return weight


def weigh_classes(
    name: str, class_weight: Any, y: NDArray[Any], weight: Array, counts: Array | None = None
) -> Array:
    """Multiply sample weights by those of their classes: the upper bounds of the samples.

    Balanced class weights count the samples, or add up their ``counts``.
    """
    classes, target = np.unique(y, return_inverse=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        each = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=counts)
        bounds = weight * each[target]
    if isinstance(class_weight, dict) and not ((each > 0) & np.isfinite(each)).all():
        raise InvalidParameter(
            f"{name} needs class weights that are numbers above 0, got {class_weight!r}."
        )
    present = np.bincount(target, bounds)
    if not (present > 0).all():
        raise InvalidTarget(
            f"{name} needs samples of positive weight in every class; class "
            f"{str(classes[int(present.argmin())])!r} has none."
        )
    return check_weights(name, bounds)


def check_bounds(name: str, bounds: Array) -> None:
    """Refuse products of C and weights whose inverses, or whose sums, are no numbers."""
    ends = bounds.min(), bounds.max()
    if not (ends[0] >= 1 / LARGEST_WEIGHT and ends[1] <= LARGEST_WEIGHT):
        raise InvalidParameter(
            f"{name} needs C times the weights between {1 / LARGEST_WEIGHT:.0e} and "
            f"{LARGEST_WEIGHT:.0e}; they are between {ends[0]:.3g} and {ends[1]:.3g}."
        )


def within(values: Array, limit: float) -> Array:
    """Cut values to a limit in size; NaN counts as the limit.

    >>> within(np.array([-np.inf, 2.0, 1e200, np.nan]), 1e100)
    array([-1.e+100,  2.e+000,  1.e+100,  1.e+100])
    """
    if values.size == 0 or (values.max() < limit and values.min() > -limit):
        return values  # as nearly always, and without a copy
    return np.nan_to_num(np.clip(values, -limit, limit), nan=limit)
