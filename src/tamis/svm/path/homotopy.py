"""Following the optimum of a quadratic programme while its linear term moves.

One routine, :func:`trace`, serves the start, the path in lambda and every repair: any point that
satisfies the bounds is the exact optimum for *some* linear term, and from there one walks to the
linear term that is wanted.

The walk goes in epochs. In each, only the variables that may have an event soon are followed; after
it, the residuals of all variables at all its events come from one matrix product, and the epoch is
cut where a variable that was not followed had come into play.
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

MAX_MARGIN = 5e7  # variables x margin set: beyond, an event costs more than a fit
REPAIR = 1e-10  # violation, relative to lambda, that is repaired at a checkpoint
DRIFT = 1e-9  # the same between checkpoints
CLOSE = 1e-3  # violation, relative to lambda, to which pairs are optimised before the start
PAIR_STEPS = 50_000_000  # variables looked at by one call of the compiled loop over pairs
# Violation after a repair, relative to lambda, with which the path is lost: a tenth of a margin.
HOPELESS = 0.1
MANY = 4  # repairs and perturbations tried before giving up


def start(state: SolverState, lam: float, x: Array) -> None:
    """Go to the optimum at ``lam`` from a feasible ``x``, or from 0 where that is better.

    The path starts from the exact optimum of a nearby programme, so nothing depends on how far the
    approach by pairs comes; a good point only saves events.
    """
    programme, g = state.programme, lam * state.programme.cost
    h = programme.outputs(x)
    if 0.5 * (programme.sign * h[programme.point]) @ x >= g @ x:
        x, h = np.zeros_like(x), np.zeros_like(h)
    x, b, left = x.copy(), 0.0, 20 * len(x) + 1000
    fixed = programme.K, programme.point, programme.sign, programme.upper, g
    while left > 0:
        # in parts of about a tenth of a second, so that an interrupt is answered
        part = min(left, max(1, PAIR_STEPS // len(x)))
        b, n_steps = smo(*fixed, x, h, CLOSE * lam * programme.scale, part)
        left = left - part if n_steps == part else 0
    state.stand(x, b)
    repair(state, lam)


def repair(state: SolverState, lam: float) -> float:
    """Walk from the nearest consistent linear term to ``lam`` cost; returns the violation."""
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
    """Give up where no repair helps."""
    if not violation <= HOPELESS * lam * state.programme.scale:
        raise Stuck


def _step(state: SolverState, line: Line, end: float) -> int:
    state.budget -= 1
    if state.budget < 0:
        raise Stuck
    n, m = len(state.x), len(state.margin.members)
    if m * n > MAX_MARGIN:
        raise PathTooLarge(
            f"The path has {m} of {n} variables on the margin at once, more than is sensible to "
            f"follow (a product of {MAX_MARGIN:.0e}). Use a smaller gamma, or "
            "GridC(step=1.0, refine=3), a grid over C with refinement around its best point."
        )
    if not m:
        return _without_margin(state, line, end)
    code = run_epoch(state, line, end)
    if code == loops.EMPTY and len(state.margin.members) == 1:
        _leave_last(state, line)
    return code


def _drifted(line: Line) -> bool:
    """Whether the last epoch ended further from the optimum than can wait."""
    assert line.record is not None
    return bool(line.record[-1].violation[-1] > DRIFT * line.scale)


def _perturb(state: SolverState, line: Line, size: float) -> None:
    """Leave a cycle: a random change of the linear term separates the ties."""
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
    """The lines that bound the intercept, and which of them do so from below."""
    programme, sign = state.programme, state.programme.sign
    # made anew: outputs that hold a large intercept have lost the digits that decide here
    a = sign * (line.offset + line.noise) - programme.outputs(state.x)[programme.point]
    if not np.isfinite(a).all():
        raise Stuck
    return a, sign * line.slope, (sign > 0) == (state.side == LOW)


def _leave_last(state: SolverState, line: Line) -> None:
    """The last free variable stands on a bound: it leaves if the intercept becomes free."""
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
    """An empty margin set: x stands still, the intercept is the middle of what is allowed."""
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


# Without a margin set every variable bounds the intercept by a line ``a_i + tau c_i``, from below
# or from above. The intercept is the middle of the allowed interval, as in LIBSVM; the interval
# closes where a variable has to enter the margin set.


def _interval(a: Array, c: Array, below: Mask, tau: float) -> tuple[int, int]:
    """The variables whose lines bound the intercept at ``tau`` from below and from above.

    Lines are compared by what is left of them after the largest slope, which with a large tau is
    all that tells them apart.
    """
    low = np.where(below, a + tau * (c - c[below].max(initial=-np.inf)), -np.inf)
    high = np.where(below, np.inf, a + tau * (c - c[~below].min(initial=np.inf)))
    return int(low.argmax()), int(high.argmin())


def _middle(a: Array, c: Array, below: Mask, tau: float) -> float:
    """Middle of the allowed interval at ``tau``."""
    i, j = _interval(a, c, below, tau)
    return 0.5 * float((a[i] + a[j]) + tau * (c[i] + c[j]))


def _opens(a: Array, c: Array, below: Mask, tau: float, tolerance: float) -> bool:
    """Whether the interval is open at ``tau``, or closed there and opens below it."""
    t = a + tau * c
    low = np.where(below, t, -np.inf)
    high = np.where(below, np.inf, t)
    if high.min() - low.max() > tolerance:
        return True
    falls = c[low >= low.max() - tolerance].min()
    return bool(falls > c[high <= high.min() + tolerance].max())


def _meeting(a: Array, c: Array, below: Mask, tau: float, end: float) -> tuple[float, int]:
    """Where, going down from ``tau``, the interval closes, and a variable on it (-1: nowhere).

    The width is concave in tau: Newton's method from the far end is monotone and finite.
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
    """``tau``, the points below it where another line becomes the bound, and ``end``."""
    points = {tau, end}
    low, high = _interval(a, c, below, tau)
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
