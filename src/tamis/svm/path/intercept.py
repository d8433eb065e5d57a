"""The intercept where the margin set is empty.

Every variable then bounds the intercept by a line ``a_i + tau c_i``, from below or from above. The
intercept is the middle of the allowed interval, as in LIBSVM; the interval closes where a variable
has to enter the margin set.
"""

import numpy as np

from tamis._arrays import Array, Mask


def interval(a: Array, c: Array, below: Mask, tau: float) -> tuple[int, int]:
    """The variables whose lines bound the intercept at ``tau`` from below and from above.

    Lines are compared by what is left of them after the largest slope, which with a large tau is
    all that tells them apart.
    """
    low = np.where(below, a + tau * (c - c[below].max(initial=-np.inf)), -np.inf)
    high = np.where(below, np.inf, a + tau * (c - c[~below].min(initial=np.inf)))
    return int(low.argmax()), int(high.argmin())


def middle(a: Array, c: Array, below: Mask, tau: float) -> float:
    """Middle of the allowed interval at ``tau``."""
    i, j = interval(a, c, below, tau)
    return 0.5 * float((a[i] + a[j]) + tau * (c[i] + c[j]))


def opens(a: Array, c: Array, below: Mask, tau: float, tolerance: float) -> bool:
    """Whether the interval is open at ``tau``, or closed there and opens below it."""
    t = a + tau * c
    low = np.where(below, t, -np.inf)
    high = np.where(below, np.inf, t)
    if high.min() - low.max() > tolerance:
        return True
    falls = c[low >= low.max() - tolerance].min()
    return bool(falls > c[high <= high.min() + tolerance].max())


def meeting(a: Array, c: Array, below: Mask, tau: float, end: float) -> tuple[float, int]:
    """Where, going down from ``tau``, the interval closes, and a variable on it (-1: nowhere).

    The width is concave in tau: Newton's method from the far end is monotone and finite.
    """
    at = end
    for _ in range(100):
        i, j = interval(a, c, below, at)
        width = (a[j] - a[i]) + at * (c[j] - c[i])
        growth = c[j] - c[i]
        if width >= 0:
            return at, -1 if at == end else i
        if growth <= 0:
            break
        following = at - width / growth
        if following <= at or following >= tau:
            at = min(max(following, at), tau)
            break
        at = following
    else:
        return at, i
    if growth <= 0:
        at = tau
    return at, interval(a, c, below, at)[0]


def kinks(a: Array, c: Array, below: Mask, tau: float, end: float) -> list[float]:
    """``tau``, the points below it where another line becomes the bound, and ``end``."""
    points = {tau, end}
    low, high = interval(a, c, below, tau)
    for lines, way, best in ((below, 1.0, low), (~below, -1.0, high)):
        own, slope, at = way * a[lines], way * c[lines], tau
        height, fall = way * a[best], way * c[best]
        # going down, a line can only be overtaken by one that falls less, that is of less slope
        while (steeper := slope < fall).any():
            cross = np.minimum((own[steeper] - height) / (fall - slope[steeper]), at)
            at = float(cross.max())
            if at <= end:
                break
            points.add(at)
            new = np.flatnonzero(steeper)[cross == at]
            new = new[slope[new].argmin()]
            height, fall = own[new], slope[new]
    return sorted(points, reverse=True)
