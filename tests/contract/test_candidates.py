"""The best candidates of a step are found among all its scores."""

import numpy as np
import pytest

from tamis.contract import Scores, Step, Trace
from tamis.contract.steps import BEST

N_UNITS = 700


def brute_force(scores, moved, adding):
    """Return the best 100 candidates and those that moved, from a full sort.

    Ties go to the first.
    """
    order = np.argsort(-scores.values if adding else scores.values, kind="stable")
    kept = [k for place, k in enumerate(order) if place < BEST or scores.units[k] in moved]
    return scores.units[kept], scores.values[kept]


def drifting(draw, kind):
    """Yield the scores of successive steps, which differ a little or completely."""
    values = draw.normal(size=N_UNITS)
    while True:
        values = values * draw.uniform(0.9, 1.1, N_UNITS)
        if kind == "leaping":
            values = draw.normal(size=N_UNITS) * 10.0 ** draw.integers(-9, 9)
        elif kind == "tied":
            values = np.round(values, 1)
        yield np.where(draw.random(N_UNITS) < 0.5, np.nan, values) if kind == "nan" else values


@pytest.mark.parametrize("kind", ["near", "leaping", "tied", "nan"])
@pytest.mark.parametrize("shrinking", [True, False])
def test_candidates_agree_with_a_full_sort(kind, shrinking):
    draw = np.random.default_rng(0)
    trace, told = Trace(N_UNITS), []
    held = np.ones(N_UNITS, dtype=bool) if shrinking else np.zeros(N_UNITS, dtype=bool)
    trace.append(Step(np.flatnonzero(held)))
    for k, values in zip(range(120), drifting(draw, kind), strict=False):
        units = draw.permutation(np.flatnonzero(held == shrinking))
        scores = Scores(units, values[units], n_equal=1)
        # every third step moves a unit that is not among the best
        moved = units[: 1 + k % 2] if k % 3 == 0 else units[np.argsort(scores.values)[:1]]
        held[moved] = not shrinking
        trace.append(Step(np.flatnonzero(held), scores=scores))
        told.append(brute_force(scores, moved, adding=not shrinking))
    for step, (units, values) in zip(list(trace)[1:], told, strict=True):
        np.testing.assert_array_equal(step.scores.units, units)
        np.testing.assert_array_equal(step.scores.values, values)


def test_candidates_are_right_if_a_search_changes_direction():
    draw = np.random.default_rng(1)
    trace, held, told = Trace(N_UNITS), np.arange(N_UNITS) < N_UNITS // 2, []
    trace.append(Step(np.flatnonzero(held)))
    for k, values in zip(range(40), drifting(draw, "near"), strict=False):
        units = np.flatnonzero(held == (k % 2 == 0))
        scores = Scores(units, values[units])
        moved = units[np.argsort(scores.values)[:1]]
        held[moved] = ~held[moved]
        trace.append(Step(np.flatnonzero(held), scores=scores))
        told.append(brute_force(scores, moved, adding=k % 2 == 1))
    for step, (units, values) in zip(list(trace)[1:], told, strict=True):
        np.testing.assert_array_equal(step.scores.units, units)
        np.testing.assert_array_equal(step.scores.values, values)


def test_candidates_do_not_depend_on_where_a_trace_was_stopped():
    """Which of many tied candidates are stored does not depend on earlier steps."""
    draw = np.random.default_rng(2)
    units = np.arange(N_UNITS)
    steps = [
        Step(
            np.delete(units, np.arange(k)),
            scores=Scores(units[k:], np.round(draw.random(N_UNITS - k), 1)),
        )
        for k in range(30)
    ]
    whole = Trace.of(N_UNITS, steps)
    stopped = Trace.from_dict(Trace.of(N_UNITS, steps[:17]).to_dict())
    for step in steps[17:]:
        stopped.append(step)
    assert stopped.to_dict() == whole.to_dict()
