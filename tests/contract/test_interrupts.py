"""An interrupted selection can be resumed with the same result, wherever it was interrupted."""

from pathlib import Path

import numpy as np
import pytest

from tests.contract.interrupts import LIBRARY, moment, outcome, undisturbed

#: Files in which steps are made, stored and chosen.
LOOP = (
    *("contract/run.py", "contract/trace.py", "contract/columns.py", "contract/selector.py"),
    *("contract/composition.py", "search/then.py", "table/selector.py"),
)
METHODS = ["correlation", "composed, backward", "frame"]
FINE = {"through", "scratch", "same"}


def run_loop(name):
    """Return the first and last execution of each line of the run loop."""
    _, lines = undisturbed(name)
    files = {str(Path(LIBRARY) / file) for file in LOOP}
    return [(place, n) for place in lines if place[0] in files for n in {1, lines[place]}]


@pytest.mark.parametrize("name", METHODS)
def test_interrupts_in_the_run_loop(name):
    moments = run_loop(name)
    drawn = np.random.default_rng(0).choice(len(moments), 20, replace=False)
    found = {moments[i]: outcome(name, [moments[i]]) for i in drawn}
    assert {key: said for key, said in found.items() if said not in FINE} == {}
    assert sum(said == "same" for said in found.values()) > len(found) / 3


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_interrupts_at_every_line_of_the_run_loop(name):
    found = {key: outcome(name, [key]) for key in run_loop(name)}
    assert {key: said for key, said in found.items() if said not in FINE} == {}


@pytest.mark.parametrize(
    "name",
    [
        *("mrmr-two-stage", "kwak", "jmi", "hsic-forward", "svm-rfe", "branch-and-bound-j3"),
        *("probes", "fusion", "frame, composed", "limit, forward", "limit, exact"),
    ],
)
def test_interrupts_at_random_moments(name):
    draw = np.random.default_rng(0)
    for weighted in (False, True):
        moments = [moment(name, draw, weighted) for _ in range(3)]
        assert outcome(name, moments) in FINE, moments
