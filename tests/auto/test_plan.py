"""The plan of Auto, which depends on rows, columns and estimated costs, not on time."""

import re

import numpy as np
import pytest

from tamis.auto import Auto
from tamis.auto.plan import ALL, FEW_SIZES, MOST_ROWS, ROWS_OF, SIZES, Planning

#: The orders of a small table. The order by interactions is removed later if no pair passes.
ORDERS = (
    "information", "forest", "floating", "distinct information", "distinct forest", "interactions",
)  # fmt: skip


def plan(n, d, budget=35.0, task="classification", sizes=SIZES):
    sizes = tuple(size for size in sizes if size <= d)
    return Planning(n, d, d, budget=budget, n_folds=5, sizes=sizes, task=task).plan()


def test_all_methods_are_tried_on_a_small_table():
    found = plan(400, 30)
    assert found.paths == ORDERS
    assert set(found.models) == set(found.everything) == {"ridge", "machine", "trees", "boosting"}
    assert found.seconds <= 35
    few = plan(150, 30)
    assert "boosting" not in few.models
    assert few.n_repeats > 1


@pytest.mark.parametrize(("d", "budget"), [(20, 3), (100, 2), (400, 20)])
def test_a_skipped_step_needs_more_time_than_it_may_use(d, budget):
    reasons = " ".join(step.reason for step in plan(1000, d, budget).steps)
    found = re.findall(r"about (\S+) s, but (\S+) s are left", reasons)
    assert found
    assert all(float(needed) >= float(left) for needed, left in found)


def test_information_with_ridge_is_always_tried():
    found = plan(500, 200, budget=1e-6)
    assert found.paths == ("information", "floating")
    assert (found.models, found.everything) == (("ridge",), ())
    skipped = {step.name for step in found.steps if not step.tried}
    assert skipped >= {"path: forest", "model: machine", f"{ALL}: ridge"}
    assert all(step.reason for step in found.steps)


@pytest.mark.parametrize("shape", [(60, 2000), (600, 500), (2000, 30), (20_000, 50), (400, 5000)])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_plan_keeps_to_the_budget_and_a_larger_budget_tries_at_least_as_much(shape, task):
    tried = []
    for budget in (1, 10, 35, 600):
        found = plan(*shape, budget=budget, task=task)
        always = sum(step.seconds for step in found.steps if step.reason == "always tried")
        assert found.seconds <= budget or found.seconds == pytest.approx(always)
        tried.append(found.n_rows * (1 + len(found.paths)))
    assert tried == sorted(tried)


def test_the_number_of_rows_is_limited_for_large_tables():
    assert plan(10**6, 20, budget=1000).n_rows == MOST_ROWS
    wide = plan(5000, 100_000)
    assert wide.n_rows < 5000
    assert "machine" not in plan(5000, 20).models
    (step,) = [step for step in plan(5000, 20).steps if step.name == "model: machine"]
    assert "at most 2000 rows" in step.reason
    assert plan(80, 100_000).paths[0] == "information"
    assert "boosting" in plan(200_000, 50).models


def test_slower_models_are_trained_at_few_sizes_next_to_the_svm():
    found = plan(1000, 30)
    assert found.sizes_of["machine"] == found.sizes_of["ridge"]
    assert found.sizes_of["trees"] == (1, 2, 5, 10, 20, 28)
    assert set(found.sizes_of["boosting"]) == {*FEW_SIZES["boosting"], 28} - {40}
    paths = {path for path, model, size in found.candidates if model == "boosting" and size < 28}
    assert paths == {"distinct forest", "interactions"}
    assert plan(4000, 12).sizes_of["trees"] == plan(4000, 12).sizes_of["ridge"]


def test_lists_of_more_than_40_columns_use_the_forest_order():
    found = plan(100, 300)
    assert found.wide == (64, 128, 256)
    assert {path for path, _, size in found.candidates if 40 < size < 300} == {"forest"}
    assert {model for _, model, size in found.candidates if size == 300} == set(found.everything)
    assert plan(100, 60).wide == ()


def test_the_plan_reports_that_rows_were_sampled():
    step = plan(10**6, 8).steps[0]
    assert step.name == "rows"
    assert step.reason.endswith(" of 1000000, drawn at random")
    assert "rows" not in {step.name for step in plan(3000, 8).steps}


def test_cross_validation_is_repeated_only_for_few_rows():
    assert plan(199, 10).n_repeats > 1
    assert plan(200, 10).n_repeats == 1


def test_a_model_is_only_used_within_its_range_of_rows():
    for n in (100, 1000, 4000, 20_000):
        models = set(plan(n, 10, budget=1000).models) - {"ridge"}
        assert models == {of for of, (least, most) in ROWS_OF.items() if least <= n <= most}


def test_the_memory_estimate_follows_the_plan():
    small, large = (Auto().cost(*shape) for shape in ((50, 5), (1500, 400)))
    assert 0 < small < large < 1e9
    assert Auto().cost(10**6, 20) < 1e9
    assert np.isfinite(Auto().cost(100, 100_000))
