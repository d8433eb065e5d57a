"""Newton's method on the set of active samples, for SVMs with squared losses.

A sample is active if its loss is not 0. If the active samples A are known, the optimum of
‖w‖²/2 + Σ Cᵢ lossᵢ² is the solution of a linear system,

    (K_AA + diag(1 / 2C)) β + b = target_A,   1'β = 0.

The samples that are active at the outputs of this solution are the next A. When A no longer
changes, the optimum is found. A step that decreases the objective too little is shortened to the
point of least objective along the step. Arrays may be of any library.
"""

from typing import Any, NamedTuple

from tamis._namespace import namespace
from tamis.svm.newton.spaces import MachinePoint, Space, SquaredLoss, SquaredProblem

#: Distance of an output from the edge of the margin or tube below which rounding determines the
#: side of the output.
ON_EDGE = 1e-12
#: Number of bisections of a step. More bisections make no difference in double precision.
HALVINGS = 50
#: A step must decrease the objective by at least this share of the decrease that the slope
#: predicts. For a full step to the optimum of a parabola, the share is one half.
DESCENT = 0.1
#: A ridge smaller than this, relative to the largest kernel value, is reached in several stages,
#: because the active samples for a larger ridge are nearly the same. Without stages, if C is so
#: large that the classes are nearly separated, the steps would pass hundreds of separating
#: functions, or stop at the first with losses below :data:`ON_EDGE`.
NARROW = 1e-6
#: The ridge of each stage, relative to the largest kernel value. Smaller ridges make no difference
#: in double precision.
STAGES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)


class Optimum(NamedTuple):
    """The SVM at the optimum, its function space, its active samples and the number of steps."""

    space: Space
    point: MachinePoint
    sides: Any
    n_steps: int
    converged: bool


def newton(space: Space, problem: SquaredProblem, *, sides: Any = None, most_steps: int) -> Optimum:
    """Find the optimum of a problem in a function space.

    ``sides`` are the active samples to start with, for example from an SVM of similar columns.
    """
    taken, steps_left = 0, most_steps
    for wider in _stages(space, problem):
        found = _at_rest(space, wider, sides, steps_left)
        taken, steps_left, sides = taken + found.n_steps, steps_left - found.n_steps, found.sides
        if not found.converged or not steps_left:
            break
    return found._replace(n_steps=taken, converged=found.converged and wider is problem)


def _stages(space: Space, problem: SquaredProblem) -> list[SquaredProblem]:
    """Return the problem with several decreasing ridges. The last one is the problem itself."""
    ridge, size = problem.ridge, space.size
    xp = namespace(ridge)
    least = float(xp.min(ridge))
    if problem.loss.takes_all or least >= NARROW * size:
        return [problem]
    wider = [
        xp.maximum(ridge, share * size + 0 * ridge) for share in STAGES if least < share * size
    ]
    return [*(problem._replace(ridge=one) for one in wider), problem]


def _at_rest(space: Space, problem: SquaredProblem, sides: Any, most_steps: int) -> Optimum:
    now, loss = space.start(problem.ridge), problem.loss
    begun, sides = sides is not None, loss.sides(now.outputs) if sides is None else sides
    for n_steps in range(1, most_steps + 1):
        step = space.solve(problem, sides, now)
        # the objective at the given sides is unknown, so the first step from them is always
        # accepted
        free = begun and n_steps == 1
        now, whole = (step, True) if free else _descend(space, problem, now, step)
        after = loss.sides(now.outputs)
        if whole and not _differ(loss, now.outputs, sides, after):
            return Optimum(space, now, sides, n_steps, True)
        sides = after
    return Optimum(space, now, sides, most_steps, False)


def _descend(
    space: Space, problem: SquaredProblem, now: MachinePoint, step: MachinePoint
) -> tuple[MachinePoint, bool]:
    """Return the end of the step, or a point before the end, and whether it is the end.

    The end is returned if the objective decreases there by at least a share of the decrease that
    the slope predicts. Without this condition, two sets of active samples on either side of the
    optimum could alternate for ever. If the condition fails, the point of least objective along the
    step is found by bisection, because the derivative increases along the step. Shortening the step
    until the objective does not increase is not enough: with a large C, only one sample at a time
    would become active.
    """
    before, promised = _value(space, problem, now), DESCENT * _slope(space, problem, now, step)
    # an increase of the objective due to rounding is ignored
    if _value(space, problem, step) <= before * (1 + ON_EDGE) + promised:
        return step, True
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        length = (low + high) / 2
        falls = _slope(space, problem, _between(now, step, length), step) < 0
        low, high = (length, high) if falls else (low, length)
    return _between(now, step, low), False


def _value(space: Space, problem: SquaredProblem, point: MachinePoint) -> float:
    """Return the objective at a point."""
    xp, over = namespace(problem.ridge), problem.loss.pull(point.outputs)
    return float(space.inner(point, point) / 2 + xp.sum(over * over / (2 * problem.ridge)))


def _slope(space: Space, problem: SquaredProblem, now: MachinePoint, step: MachinePoint) -> float:
    """Return the derivative of the objective in the direction of the step."""
    xp, moved = namespace(problem.ridge), _difference(step, now)
    pull = problem.loss.pull(now.outputs) / problem.ridge
    return float(space.inner(now, moved) - xp.sum(pull * moved.outputs))


def _difference(step: MachinePoint, now: MachinePoint) -> MachinePoint:
    return MachinePoint(*(a - b for a, b in zip(step, now, strict=True)))


def _between(now: MachinePoint, step: MachinePoint, length: float) -> MachinePoint:
    moved = _difference(step, now)
    return MachinePoint(*(a + length * b for a, b in zip(now, moved, strict=True)))


def _differ(loss: SquaredLoss, outputs: Any, sides: Any, after: Any) -> bool:
    """Return whether any sample changed its side, apart from changes due to rounding."""
    xp = namespace(outputs)
    size = 1 + float(xp.max(xp.abs(outputs)))
    moved = (sides != after) & (xp.abs(loss.beyond(outputs)) > ON_EDGE * size)
    return bool(xp.any(moved))
