"""Numbers too large to count with.

Rows far off have outputs, errors and doubt whose squares or products are no numbers, and what is
infinite becomes NaN with the first 0 it meets. Nothing is infinite here instead: what is beyond a
limit counts as the limit, far above all that can be told from it, and what is no number counts as
the limit too. Doubt that reaches it says that nothing is known.
"""

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter

#: Outputs: with what rounding and doubt add they stay numbers.
FARTHEST_OUTPUT = 1e300
#: Doubt about outputs, more than lies between any two of them.
FARTHEST_DOUBT = 1e304
#: Errors that are squared: twice the largest target, and millions of such squares have a sum.
FARTHEST_SQUARED = 4e150

#: Weights of samples: the sum of many, times a kernel value or two, is a number.
LARGEST_WEIGHT = 1e250


def check_weights(name: str, weight: Array) -> None:
    """Refuse weights that are negative, or too large to be added up."""
    if (weight < 0).any():
        raise InvalidParameter(f"{name} needs sample weights that are not negative.")
    if (largest := float(weight.max(initial=0.0))) > LARGEST_WEIGHT:
        raise InvalidParameter(
            f"{name} needs sample weights up to {LARGEST_WEIGHT:.0e}, times those of their "
            f"classes; they reach {largest:.3g}. Divide them by a number: they multiply C."
        )


def check_bounds(name: str, bounds: Array) -> None:
    """Refuse products of C and weights whose inverses, or whose sums, are no numbers."""
    ends = bounds.min(), bounds.max()
    if not (ends[0] >= 1 / LARGEST_WEIGHT and ends[1] <= LARGEST_WEIGHT):
        raise InvalidParameter(
            f"{name} needs C times the weights between {1 / LARGEST_WEIGHT:.0e} and "
            f"{LARGEST_WEIGHT:.0e}; they are between {ends[0]:.3g} and {ends[1]:.3g}."
        )


def within(values: Array, limit: float) -> Array:
    """``values`` where they are numbers up to ``limit`` in size, and that elsewhere.

    >>> within(np.array([-np.inf, 2.0, 1e200, np.nan]), 1e100)
    array([-1.e+100,  2.e+000,  1.e+100,  1.e+100])
    """
    if values.size == 0 or (values.max() < limit and values.min() > -limit):
        return values  # as nearly always, and without a copy
    return np.nan_to_num(np.clip(values, -limit, limit), nan=limit)
