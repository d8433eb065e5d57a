"""Kernel machines of squared losses, exactly: Newton's method on the set of active samples.

With the active samples A known, the optimum of ‖w‖²/2 + Σ Cᵢ lossᵢ² is one linear system,

    (K_AA + diag(1 / 2C)) β + b = target_A,   1'β = 0,

and the samples active at its outputs are the next A; when A repeats, the optimum is found. A step
that would raise the objective ends where this is least. Arrays are those of any library.
"""

from typing import Any, NamedTuple

from tamis._namespace import namespace
from tamis.svm.newton.spaces import MachinePoint, Space, SquaredLoss, SquaredProblem

#: Distance from the edge of the active set below which a sample may be on either side: rounding.
ON_EDGE = 1e-12
#: Halvings of where a step ends; more make no difference in double precision.
HALVINGS = 50
#: Share of the slope's promise that a step must keep; of a whole step to the optimum it is a half.
DESCENT = 0.1
#: Ridge beside the largest kernel below which it is come to by stages. Where C parts the classes
#: but for so little, steps from nowhere would go from one corner of the machines that part them to
#: the next, some hundred times, or end at the first whose losses are below :data:`ON_EDGE`; the
#: active samples of a larger ridge are nearly or wholly those of a smaller one.
NARROW = 1e-6
#: The stages, as shares of the largest kernel; below the last double precision sees no difference.
STAGES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)


class Optimum(NamedTuple):
    """The machine that was found, where and how."""

    space: Space
    point: MachinePoint
    sides: Any
    n_steps: int
    converged: bool


def newton(space: Space, problem: SquaredProblem, *, sides: Any = None, most_steps: int) -> Optimum:
    """The optimum of a problem among the functions of a space.

    ``sides`` are the active samples to begin with, as an optimum of similar columns has them.
    """
    taken, steps_left = 0, most_steps
    for wider in _stages(space, problem):
        found = _at_rest(space, wider, sides, steps_left)
        taken, steps_left, sides = taken + found.n_steps, steps_left - found.n_steps, found.sides
        if not found.converged or not steps_left:
            break
    return found._replace(n_steps=taken, converged=found.converged and wider is problem)


def _stages(space: Space, problem: SquaredProblem) -> list[SquaredProblem]:
    """Problems of larger ridges on the way to a small one, the problem itself the last."""
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
        # sides that were given belong to no point yet: the first step has nothing to be less than
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
    """The whole step, or the least objective on the way to it; and whether it is whole.

    The objective must be less by a share of what the slope promises: without it two sets of
    active samples on either side of the optimum could take turns for ever. On the way its
    derivative rises, so that the least is found by halves; where C is large, a step that only
    stops before the objective rises makes one sample active at a time.
    """
    before, promised = _value(space, problem, now), DESCENT * _slope(space, problem, now, step)
    # what rounding adds to a sum is no rise
    if _value(space, problem, step) <= before * (1 + ON_EDGE) + promised:
        return step, True
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        length = (low + high) / 2
        falls = _slope(space, problem, _between(now, step, length), step) < 0
        low, high = (length, high) if falls else (low, length)
    return _between(now, step, low), False


def _value(space: Space, problem: SquaredProblem, point: MachinePoint) -> float:
    """The objective."""
    xp, over = namespace(problem.ridge), problem.loss.pull(point.outputs)
    return float(space.inner(point, point) / 2 + xp.sum(over * over / (2 * problem.ridge)))


def _slope(space: Space, problem: SquaredProblem, now: MachinePoint, step: MachinePoint) -> float:
    """Its derivative from here towards the step, which is the less the better."""
    xp, moved = namespace(problem.ridge), _difference(step, now)
    pull = problem.loss.pull(now.outputs) / problem.ridge
    return float(space.inner(now, moved) - xp.sum(pull * moved.outputs))


def _difference(step: MachinePoint, now: MachinePoint) -> MachinePoint:
    return MachinePoint(*(a - b for a, b in zip(step, now, strict=True)))


def _between(now: MachinePoint, step: MachinePoint, length: float) -> MachinePoint:
    moved = _difference(step, now)
    return MachinePoint(*(a + length * b for a, b in zip(now, moved, strict=True)))


def _differ(loss: SquaredLoss, outputs: Any, sides: Any, after: Any) -> bool:
    """Whether a sample changed its side by more than rounding."""
    xp = namespace(outputs)
    size = 1 + float(xp.max(xp.abs(outputs)))
    moved = (sides != after) & (xp.abs(loss.beyond(outputs)) > ON_EDGE * size)
    return bool(xp.any(moved))
