"""The plan of Auto, which depends on rows, columns and estimated costs, not on time."""

import numpy as np
import pytest

from tamis.auto import Auto
from tamis.auto.plan import ALL, MOST_ROWS, Planning, tree_sizes

SIZES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40)


def plan(n, d, budget=35.0, task="classification", sizes=SIZES):
    sizes = tuple(size for size in sizes if size <= d)
    return Planning(n, d, d, budget=budget, n_folds=5, sizes=sizes, task=task).plan()


def test_all_methods_are_tried_on_a_small_table():
    found = plan(150, 30)
    assert found.paths == ("information", "forest")
    assert found.models == found.everything == ("ridge", "machine", "trees")
    assert found.n_repeats > 1
    assert all(step.tried for step in found.steps)
    assert found.seconds <= 35


def test_information_with_ridge_is_always_tried():
    found = plan(500, 200, budget=1e-6)
    assert (found.paths, found.models, found.everything) == (("information",), ("ridge",), ())
    skipped = {step.name for step in found.steps if not step.tried}
    assert skipped >= {"path: forest", "model: machine", f"{ALL}: ridge"}
    assert all(step.reason for step in found.steps)


@pytest.mark.parametrize("shape", [(60, 2000), (600, 500), (2000, 30), (20_000, 50), (400, 5000)])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_plan_keeps_to_the_budget_and_a_larger_budget_tries_at_least_as_much(shape, task):
    tried = []
    for budget in (1, 10, 35, 600):
        found = plan(*shape, budget=budget, task=task)
        (first,) = [step.seconds for step in found.steps if step.name == "path: information"]
        assert found.seconds <= budget or found.seconds == pytest.approx(first)
        tried.append((len(found.paths) + len(found.models)) * found.n_rows)
    assert tried == sorted(tried)


def test_the_number_of_rows_is_limited_for_large_tables():
    assert plan(10**6, 20).n_rows == MOST_ROWS
    wide = plan(5000, 100_000)
    assert wide.n_rows < 5000
    assert "machine" not in plan(5000, 20).models
    (step,) = [step for step in plan(5000, 20).steps if step.name == "model: machine"]
    assert "at most 2000 rows" in step.reason
    assert plan(80, 100_000).paths[0] == "information"


def test_trees_are_tried_at_every_size_if_no_other_model_is_nonlinear():
    assert plan(5000, 12).trees_at == plan(5000, 12).sizes
    assert "trees" in plan(5000, 12).models_at(3)
    few = plan(5000, 30, task="regression")
    assert few.trees_at == (1, 2, 5, 10, 20, 28)
    assert "model: trees at every size" in {one.name for one in few.steps if not one.tried}
    assert plan(2000, 12).trees_at == (1, 2, 5, 10)  # the SVM covers the others


def test_the_plan_reports_that_rows_were_sampled():
    step = plan(6366, 8).steps[0]
    assert (step.name, step.reason) == ("rows", f"{MOST_ROWS} of 6366, drawn at random")
    assert "rows" not in {step.name for step in plan(MOST_ROWS, 8).steps}


def test_cross_validation_is_repeated_only_for_few_rows():
    assert plan(199, 10).n_repeats > 1
    assert plan(200, 10).n_repeats == 1


def test_rounds_are_ordered_so_that_a_run_can_stop_early():
    found = plan(150, 30)
    paths = [one.path for one in found.rounds]
    n = found.n_folds
    assert paths[: 2 * n] == ["information"] * n + [ALL] * n
    assert len(paths) == found.n_repeats * 3 * n
    assert len(set(found.rounds)) == len(paths)


def test_sizes_of_trees():
    assert tree_sizes(SIZES) == (1, 2, 5, 10, 20, 40)
    assert tree_sizes((1, 2, 3, 4, 5, 7, 10, 13)) == (1, 2, 5, 10, 13)
    assert tree_sizes((3,)) == (3,)


def test_the_memory_estimate_follows_the_plan():
    small, large = (Auto().cost(*shape) for shape in ((50, 5), (1500, 400)))
    assert 0 < small < large < 1e9
    assert Auto().cost(10**6, 20) < 1e9
    assert np.isfinite(Auto().cost(100, 100_000))
