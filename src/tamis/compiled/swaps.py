"""Order changes of decision values along a path, for the area under the ROC curve."""

# mypy: disable-error-code="no-untyped-def"

from numba import njit


@njit(cache=True)
def swaps(lam, h, tie, positive, negative, weight, state, out_lam, out_change):
    """Order changes of all pairs of opposite classes over one block; state is 0, 1/2 or 1.

    Changes are multiplied by the weights of the pairs. Returns how many there are, which may be
    more than there was room for.
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
                    if row > 0:
                        # a tie begins and ends on the edge of its band
                        edge = new + old - 1.0 if new == 0.5 or old == 0.5 else 0.0
                        side = 1.0 if edge > 0 else (-1.0 if edge < 0 else 0.0)
                        last = tie[row - 1, positive[a]] + tie[row - 1, negative[b]]
                        before = h[row - 1, positive[a]] - h[row - 1, negative[b]] - side * last
                        share = before / (before - d + side * band)
                        where = lam[row - 1] + (lam[row] - lam[row - 1]) * share
                    out_lam[count] = where
                    out_change[count] = (new - old) * weight[a, b]
                count += 1
    return count
