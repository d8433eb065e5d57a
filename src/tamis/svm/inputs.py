"""Validation of X, y, weights and ranges for SVMs, and limits that avoid overflow.

Squares and products of the outputs of distant rows may overflow, and infinity times 0 is NaN. So
outputs, errors and bounds are limited: NaN and values beyond a limit are replaced by the limit. An
error bound at its limit means that nothing is known about the value.
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

#: Largest output. Adding rounding and error bounds to it does not overflow.
FARTHEST_OUTPUT = 1e300
#: Largest bound on the error of an output. It exceeds the difference between any two outputs.
FARTHEST_DOUBT = 1e304
#: Largest error that is squared. It exceeds twice the largest target, and a sum of millions of such
#: squares does not overflow.
FARTHEST_SQUARED = 4e150
#: Largest sample weight. A sum of many of them, times one or two kernel values, does not overflow.
LARGEST_WEIGHT = 1e250
#: Memory in bytes that a path of n rows needs, divided by n². It includes the kernel matrix, its
#: centred copy and the kernel rows of the test fold.
KERNEL_BYTES = 24.0
#: Largest number of rows of a path. Their kernel matrix takes about 1 GB.
MAX_SAMPLES = 12_000

#: Default range of lambda = 1 / C.
RANGE = (2.0**-8, 2.0**9)


def _rises(ends: Any) -> bool:
    try:
        low, high = ends
        return bool(0 < low < high < np.inf and 1 / low < np.inf)
    except (TypeError, ValueError):
        return False


#: Constraint on a range: two positive numbers in increasing order.
RISING = Constraint(("a pair of increasing numbers above 0",), _rises)


def check_rows(estimator: BaseEstimator, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
    """Check parameters and data. Return ``X`` as finite float64 numbers and ``y`` as a vector."""
    check_parameters(estimator)
    with np.errstate(invalid="ignore"):  # scikit-learn adds up X to test for infinite values
        X, y = validate_data(estimator, X, y, dtype=np.float64)
    return X, y


def check_new_rows(estimator: BaseEstimator, X: Any) -> Array:
    """Return new rows for a fitted estimator as finite float64 numbers.

    An estimator that is not fitted is refused.
    """
    check_is_fitted(estimator)
    with np.errstate(invalid="ignore"):
        rows: Array = validate_data(estimator, X, dtype=np.float64, reset=False)
    return rows


def check_size(name: str, n_samples: int) -> None:
    """Refuse more samples than a path supports."""
    if n_samples > MAX_SAMPLES:
        raise PathTooLarge(
            f"{name} needs at most {MAX_SAMPLES} samples, because it stores the kernel matrix; got "
            f"{n_samples}. Use GridC(step=1.0, refine=3), a grid over C with refinement around its "
            "best point."
        )


def check_numbers(name: str, y: NDArray[Any]) -> Array:
    """Return a numeric target as float64. Refuse a target that is not numeric or too large."""
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTarget(
            f"{name} needs a numeric target, but y cannot be converted to numbers (its first value "
            f"is {str(np.asarray(y).flat[0])!r}). For classification, use SVCPath or SVCPathCV."
        ) from None
    if (largest := float(np.abs(numbers).max())) > FARTHEST_OUTPUT:
        raise InvalidTarget(
            f"{name} needs a target up to {FARTHEST_OUTPUT:.0e}, so that differences do not "
            f"overflow; y reaches {largest:.3g}. Scale it."
        )
    return numbers


def encode_classes(name: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes, and the class code of each sample, from 0. Refuse a single class."""
    # scikit-learn casts large numbers to integers for its check
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
    """Return the weight of each sample, which is 1 if no weights are given."""
    return check_weights(name, _check_sample_weight(sample_weight, X, dtype=np.float64))


def check_weights(name: str, weight: Array) -> Array:
    """Return the sample weights. Refuse negative weights, and weights whose sums would overflow."""
    if (weight < 0).any():
        raise InvalidParameter(f"{name} needs sample weights that are not negative.")
    if (largest := float(weight.max(initial=0.0))) > LARGEST_WEIGHT:
        raise InvalidParameter(
            f"{name} needs products of sample weight and class weight up to {LARGEST_WEIGHT:.0e}; "
            f"they reach {largest:.3g}. Weights multiply C, so divide them by a constant."
        )
    return weight


def weigh_classes(
    name: str, class_weight: Any, y: NDArray[Any], weight: Array, counts: Array | None = None
) -> Array:
    """Return the factor of C for each sample: its sample weight times its class weight.

    Balanced class weights are computed from the number of samples in each class. If ``counts`` are
    given, their sum over the samples of a class replaces this number.
    """
    classes, target = np.unique(y, return_inverse=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        each = np.ones(len(classes))
        if class_weight is not None:
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
    """Refuse products of C and weights whose inverses or sums would overflow."""
    ends = bounds.min(), bounds.max()
    if not (ends[0] >= 1 / LARGEST_WEIGHT and ends[1] <= LARGEST_WEIGHT):
        raise InvalidParameter(
            f"{name} needs C times the weights between {1 / LARGEST_WEIGHT:.0e} and "
            f"{LARGEST_WEIGHT:.0e}; they are between {ends[0]:.3g} and {ends[1]:.3g}."
        )


def within(values: Array, limit: float) -> Array:
    """Clip values to the range from -limit to limit. NaN is replaced by the limit.

    >>> within(np.array([-np.inf, 2.0, 1e200, np.nan]), 1e100)
    array([-1.e+100,  2.e+000,  1.e+100,  1.e+100])
    """
    if values.size == 0 or (values.max() < limit and values.min() > -limit):
        return values  # the usual case, without a copy
    return np.nan_to_num(np.clip(values, -limit, limit), nan=limit)
