"""Homotopy: following the optimum of a quadratic programme while its linear term changes.

The same routine, :func:`trace`, is used for the start, the path in lambda and every repair. Any
point that satisfies the bounds is the exact optimum for *some* linear term. Starting from this
linear term, the routine follows the optimum to the required linear term.

The routine proceeds in epochs. An event is a point at which a variable reaches a bound or enters
the margin set. Each epoch follows only the variables that may have an event soon. After the epoch,
a single matrix product computes the residuals of all variables at all events. The epoch is cut at
the first event of a variable that was not followed.
"""

import numpy as np

from tamis._arrays import Array, Mask
from tamis._seeds import stream
from tamis.compiled import margin_set as loops
from tamis.compiled.events import EpochLog
from tamis.compiled.margin_set import FREE, HIGH, LOW
from tamis.compiled.smo import smo
from tamis.exceptions import PathTooLarge
from tamis.svm.path.epoch import record, run_epoch
from tamis.svm.path.programme import Line, Stuck
from tamis.svm.path.proofs import Walked
from tamis.svm.path.state import EPOCH, MarginSet, SolverState

# Largest allowed product of the number of variables and the size of the margin set. With a larger
# product, an event takes longer than training an SVM.
MAX_MARGIN = 5e7
# Limits for the violation of the optimality conditions, relative to lambda. The path is repaired if
# the violation exceeds REPAIR at a checkpoint, or DRIFT between two checkpoints. Before the path
# starts, pairs of variables are optimised until the violation is below CLOSE.
REPAIR, DRIFT, CLOSE = 1e-10, 1e-9, 1e-3
PAIR_STEPS = 50_000_000  # number of variables that a call of the compiled loop over pairs visits
# If the violation after a repair exceeds this share of lambda, the path is lost. The share is a
# tenth of the margin.
HOPELESS = 0.1
MANY = 4  # number of repairs or perturbations that are tried before giving up


def start(state: SolverState, lam: float, x: Array) -> None:
    """Set the state to the optimum at ``lam``, starting from a feasible ``x``, or from 0 if better.

    Pairs of variables are optimised first. The result is the exact optimum of a nearby programme. A
    repair then moves it to the optimum at ``lam``. So the accuracy of the optimum does not depend
    on the optimisation of pairs, which only reduces the number of events.
    """
    programme, g = state.programme, lam * state.programme.cost
    h = programme.outputs(x)
    if 0.5 * (programme.sign * h[programme.point]) @ x >= g @ x:
        x, h = np.zeros_like(x), np.zeros_like(h)
    x, b, left = x.copy(), 0.0, 20 * len(x) + 1000
    fixed = programme.K, programme.point, programme.sign, programme.upper, g
    while left > 0:
        # each call takes about a tenth of a second, so that the loop can be interrupted
        part = min(left, max(1, PAIR_STEPS // len(x)))
        b, n_steps = smo(*fixed, x, h, CLOSE * lam * programme.scale, part)
        left = left - part if n_steps == part else 0
    state.stand(x, b)
    repair(state, lam)


def repair(state: SolverState, lam: float) -> float:
    """Move the current point to the optimum at ``lam``, and return the remaining violation.

    The optimum is followed from the nearest linear term for which the current point is optimal.
    """
    target = lam * state.programme.cost
    tau = state.tau
    violation = state.violation(target)
    for _ in range(MANY):
        if violation <= 1e-13 * lam:
            break
        slope = state.consistent(target) - target
        line = Line(target, slope, state.excess, lam * state.programme.scale)
        state.tau = 1.0
        state.speed = None
        trace(state, line, 0.0)
        state.refresh()
        state.n_repairs += 1
        violation = state.violation(target)
        if violation <= REPAIR * line.scale:
            break
    state.tau = tau
    state.speed = None
    return violation


def trace(state: SolverState, line: Line, end: float) -> None:
    """Follow the optimum along ``line`` from ``state.tau`` down to ``end``."""
    perturbed = 0
    stalled = 0
    while state.tau > end:
        before = state.tau
        code = _step(state, line, end)
        if code == loops.CYCLE or stalled > 2 * len(state.x) // EPOCH + 20:
            perturbed += 1
            if perturbed > MANY:
                raise Stuck
            _perturb(state, line, 10.0 ** (perturbed - 11))
            stalled = 0
        elif line.record and (code == loops.INEXACT or _drifted(line)):
            state.refresh(line.record)
            keep_to(state, repair(state, state.tau), state.tau)
        stalled = stalled + 1 if state.tau >= before * (1 - 1e-12) else 0


def keep_to(state: SolverState, violation: float, lam: float) -> None:
    """Raise :exc:`Stuck` if the violation after a repair is too large."""
    if not violation <= HOPELESS * lam * state.programme.scale:
        raise Stuck


def _step(state: SolverState, line: Line, end: float) -> int:
    state.budget -= 1
    if state.budget < 0:
        raise Stuck
    n, m = len(state.x), len(state.margin.members)
    if m * n > MAX_MARGIN:
        raise PathTooLarge(
            f"The path has {m} of {n} variables on the margin at once. The product of these "
            f"numbers must not exceed {MAX_MARGIN:.0e}. Use a smaller gamma, or "
            "GridC(step=1.0, refine=3), a grid over C with refinement around its best point."
        )
    if not m:
        return _without_margin(state, line, end)
    code = run_epoch(state, line, end)
    if code == loops.EMPTY and len(state.margin.members) == 1:
        _leave_last(state, line)
    return code


def _drifted(line: Line) -> bool:
    """Return whether the violation at the end of the last epoch is too large."""
    assert line.record is not None
    return bool(line.record[-1].violation[-1] > DRIFT * line.scale)


def _perturb(state: SolverState, line: Line, size: float) -> None:
    """Leave a cycle by adding small random numbers to the linear term, which breaks ties."""
    state.refresh(line.record)
    draw = stream(0, "perturbation", len(state.x), size).uniform(-1, 1, len(state.x))
    noise = size * line.scale * draw
    target = line.offset + state.tau * line.slope + noise
    tau = state.tau
    state.tau, state.zeros = 1.0, 0
    detour = Line(target, state.consistent(target) - target, state.excess, line.scale)
    while state.tau > 0.0:
        if _step(state, detour, 0.0) == loops.CYCLE:
            raise Stuck
    line.noise = noise
    state.tau, state.zeros = tau, 0
    state.speed = None


def _bounds(state: SolverState, line: Line) -> tuple[Array, Array, Mask]:
    """Return offset and slope of each line that bounds the intercept.

    The third array is a mask of the lines that are lower bounds.
    """
    programme, sign = state.programme, state.programme.sign
    # outputs are computed from scratch, because outputs with a large intercept have lost digits
    a = sign * (line.offset + line.noise) - programme.outputs(state.x)[programme.point]
    if not np.isfinite(a).all():
        raise Stuck
    return a, sign * line.slope, (sign > 0) == (state.side == LOW)


def _leave_last(state: SolverState, line: Line) -> None:
    """Empty a margin set whose only variable is on a bound, if the intercept is then free.

    The intercept is free if it may lie anywhere in an interval. Otherwise the variable stays.
    """
    upper, i = state.programme.upper, int(state.margin.members[0])
    side = HIGH if state.x[i] > 0.5 * upper[i] else LOW
    state.side[i] = side
    tolerance = 1e-11 * line.scale + 1e-14 * float(np.abs(state.h).max())
    if _opens(*_bounds(state, line), state.tau, tolerance):
        state.snap()
        state.margin = MarginSet.empty()
    else:
        state.side[i] = FREE


def _without_margin(state: SolverState, line: Line, end: float) -> int:
    """Follow the path while the margin set is empty.

    x does not change, and the intercept is the middle of the interval of allowed intercepts.
    """
    state.refresh(line.record)
    a, c, below = _bounds(state, line)
    tau, j = _meeting(a, c, below, state.tau, end)
    rows = np.array(_kinks(a, c, below, state.tau, tau))
    b = np.array([_middle(a, c, below, t) for t in rows])
    if line.record is not None:
        none = np.empty((len(rows), 0))
        log = EpochLog(rows, b, none, none.astype(np.int8), np.zeros(len(rows), np.int64))
        h = state.programme.outputs(state.x) + b[:, None]
        walked = Walked(log, np.empty(0, np.int64), h, None)
        record(state, line, walked, np.arange(len(state.x)), loops.DONE)
    state.b, state.tau, state.speed = float(b[-1]), tau, None
    state.refresh()
    if j >= 0:
        state.hold(j)
    return loops.DONE


# If the margin set is empty, each variable i bounds the intercept by a line ``a_i + tau c_i``, from
# below or from above. The middle of the allowed interval is used, as in LIBSVM. At the tau at which
# the interval closes, a variable has to enter the margin set.


def _interval(a: Array, c: Array, below: Mask, tau: float) -> tuple[int, int]:
    """Return the variables whose lines bound the intercept at ``tau`` from below and from above.

    The extreme slope is subtracted from all slopes before the lines are compared. Otherwise, small
    differences between the lines would be lost at a large tau.
    """
    low = np.where(below, a + tau * (c - c[below].max(initial=-np.inf)), -np.inf)
    high = np.where(below, np.inf, a + tau * (c - c[~below].min(initial=np.inf)))
    return int(low.argmax()), int(high.argmin())


def _middle(a: Array, c: Array, below: Mask, tau: float) -> float:
    """Return the middle of the allowed interval at ``tau``."""
    i, j = _interval(a, c, below, tau)
    return 0.5 * float((a[i] + a[j]) + tau * (c[i] + c[j]))


def _opens(a: Array, c: Array, below: Mask, tau: float, tolerance: float) -> bool:
    """Return whether the interval has a positive width at ``tau``, or just below it."""
    t = a + tau * c
    low = np.where(below, t, -np.inf)
    high = np.where(below, np.inf, t)
    if high.min() - low.max() > tolerance:
        return True
    falls = c[low >= low.max() - tolerance].min()
    return bool(falls > c[high <= high.min() + tolerance].max())


def _meeting(a: Array, c: Array, below: Mask, tau: float, end: float) -> tuple[float, int]:
    """Return the first tau below ``tau`` at which the interval closes, and a variable there.

    If it does not close before ``end``, return ``end`` and -1. The width is concave in tau, so
    Newton's method from the far end is monotone and takes finitely many steps.
    """
    at = end
    for _ in range(100):
        i, j = _interval(a, c, below, at)
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
    return at, _interval(a, c, below, at)[0]


def _kinks(a: Array, c: Array, below: Mask, tau: float, end: float) -> list[float]:
    """Return ``tau``, the points below it at which the bounding line changes, and ``end``."""
    points = {tau, end}
    low, high = _interval(a, c, below, tau)
    for lines, way, best in ((below, 1.0, low), (~below, -1.0, high)):
        own, slope, at = way * a[lines], way * c[lines], tau
        height, fall = way * a[best], way * c[best]
        # as tau decreases, only a line with a smaller slope can cross the bounding line
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
