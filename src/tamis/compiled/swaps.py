"""Order changes of decision values along a path, for the area under the ROC curve."""

# mypy: disable-error-code="no-untyped-def"

from numba import njit


@njit(cache=True)
def swaps(lam, h, tie, positive, negative, state, out_lam, out_change):
    """Order changes of all pairs of opposite classes over one block; state is 0, 1/2 or 1.

    Returns how many there are, which may be more than there was room for.
    """
    count = 0
    for row in range(h.shape[0]):
        for a in range(positive.shape[0]):
            top = h[row, positive[a]]
            for b in range(negative.shape[0]):
                d = top - h[row, negative[b]]
                band = tie[row, positive[a]] + tie[row, negative[b]]
                new = 1.0 if d > band else (0.0 if d < -band else 0.5)
                old = state[a, b]
                if new == old:
                    continue
                state[a, b] = new
                if count < out_lam.shape[0]:
                    where = lam[row]
                    if row > 0 and new != 0.5 and old != 0.5:
                        before = h[row - 1, positive[a]] - h[row - 1, negative[b]]
                        share = before / (before - d)
                        where = lam[row - 1] + (lam[row] - lam[row - 1]) * share
                    out_lam[count] = where
                    out_change[count] = new - old
                count += 1
    return count
