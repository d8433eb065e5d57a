"""The intercept where the margin set is empty.

Every variable then bounds the intercept by a line ``a_i + tau c_i``, from below or from above. The
intercept is the middle of the allowed interval, as in LIBSVM; the interval closes where a variable
has to enter the margin set.
"""

import numpy as np

from tamis._arrays import Array, Mask


def interval(a: Array, c: Array, below: Mask, tau: float) -> tuple[int, int]:
    """The variables whose lines bound the intercept at ``tau`` from below and from above."""
    t = a + tau * c
    return int(np.where(below, t, -np.inf).argmax()), int(np.where(below, np.inf, t).argmin())


def middle(a: Array, c: Array, below: Mask, tau: float) -> float:
    """Middle of the allowed interval at ``tau``."""
    i, j = interval(a, c, below, tau)
    return 0.5 * float(a[i] + tau * c[i] + a[j] + tau * c[j])


def opens(a: Array, c: Array, below: Mask, tau: float, tolerance: float) -> bool:
    """Whether the interval, closed at ``tau``, opens below it."""
    t = a + tau * c
    low = np.where(below, t, -np.inf)
    high = np.where(below, np.inf, t)
    falls = c[low >= low.max() - tolerance].min()
    return bool(falls > c[high <= high.min() + tolerance].max())


def meeting(a: Array, c: Array, below: Mask, tau: float, end: float) -> tuple[float, int]:
    """Where, going down from ``tau``, the interval closes, and a variable on it (-1: nowhere).

    The width is concave in tau: Newton's method from the far end is monotone and finite.
    """
    at = end
    for _ in range(100):
        i, j = interval(a, c, below, at)
        width = a[j] + at * c[j] - a[i] - at * c[i]
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
    for lines, way in ((np.flatnonzero(below), 1.0), (np.flatnonzero(~below), -1.0)):
        at = tau
        own, slope = way * a[lines], way * c[lines]
        while len(lines):
            # of the lines that are highest here, the one that stays highest below has least slope
            value = own + at * slope
            top = value >= value.max() - 1e-14 * (1 + np.abs(value).max())
            best = np.flatnonzero(top)[slope[top].argmin()]
            steeper = slope < slope[best]
            if not steeper.any():
                break
            cross = (own[steeper] - own[best]) / (slope[best] - slope[steeper])
            cross = cross[cross < at * (1 - 1e-12)]
            if not len(cross) or cross.max() <= end:
                break
            at = float(cross.max())
            points.add(at)
    return sorted(points, reverse=True)
