"""Standings of methods, checked by hand on small tables of scores."""

import numpy as np
import pytest

from tamis.evaluation import Failure, Outcome, Results, Score, corrected_t, holm, standings
from tamis.evaluation.metrics import metric
from tamis.evaluation.results import Finished
from tamis.exceptions import InvalidParameter

SIZES = (1, 2, 4)


def results(tables, name="error", data="here", failures=()):
    """Return results from tables of scores: realizations by sizes, or a single column."""
    tasks = []
    for method, table in tables.items():
        for i, row in enumerate(np.asarray(table, dtype=float)):
            own = len(row) == 1
            scores = [
                Score("ridge", 3 if own else SIZES[k], "own" if own else "given", name, value)
                for k, value in enumerate(row)
            ]
            order = None if own else tuple(np.roll(np.arange(6), i).tolist())
            support = (0, 1, 2) if own else order
            outcome = Outcome(tuple(scores), order, support, 60, 20, 6, 0.1 * (i + 1))
            tasks.append(Finished(method, data, i, outcome))
    return Results(tuple(tasks), tuple(failures), {name: metric(name)})


RNG = np.random.default_rng(0)
GOOD = RNG.uniform(0.1, 0.2, (6, 3))
POOR = GOOD + np.array([0.2, 0.15, 0.3]) + RNG.uniform(0, 0.05, (6, 3))


def test_a_curve_has_means_and_corrected_standard_errors():
    row = standings(results({"good": GOOD})).rows[0]
    widened = np.sqrt(1 / 6 + 20 / 60)
    for k, point in enumerate(row.curve):
        assert point.size == SIZES[k]
        assert point.mean == pytest.approx(GOOD[:, k].mean())
        assert point.error == pytest.approx(GOOD[:, k].std(ddof=1) * widened)
    assert row.size == SIZES[GOOD.mean(axis=0).argmin()]
    assert row.seconds == pytest.approx(0.35)


def test_each_realization_is_scored_at_the_best_size_of_the_others():
    row = standings(results({"good": GOOD})).rows[0]
    for i in range(6):
        others = np.delete(GOOD, i, axis=0).mean(axis=0)
        assert row.scores[i] == GOOD[i, others.argmin()]


def test_scores_are_not_optimistic_if_all_sizes_are_equal():
    """If all sizes are equally good, the lowest mean is too small, but the score is not."""
    least, scored = [], []
    for seed in range(300):
        noise = np.random.default_rng(seed).normal(size=(8, 3))
        row = standings(results({"luck": noise}, "mse")).rows[0]
        least.append(min(point.mean for point in row.curve))
        scored.append(row.mean)
    assert np.mean(least) < -0.2
    assert abs(np.mean(scored)) < 0.08


def test_enough_is_the_smallest_size_within_one_standard_error():
    table = np.array([[0.30, 0.21, 0.20], [0.32, 0.19, 0.20], [0.31, 0.215, 0.20]])
    row = standings(results({"one": table})).rows[0]
    assert (row.size, row.enough) == (4, 2)


def test_the_best_method_comes_first_and_the_others_are_tested_against_it():
    found = standings(results({"poor": POOR, "good": GOOD}))
    assert [row.method for row in found.rows] == ["good", "poor"]
    assert np.isnan(found.rows[0].p_value)
    a, b = (list(row.scores.values()) for row in found.rows)
    test = corrected_t(a, b, 20 / 60)
    (pair,) = found.pairs
    assert (pair.difference, pair.p_value) == (test.difference, test.p_value)
    assert found.rows[1].p_value == pair.p_adjusted


def test_all_pairs_are_adjusted_together():
    middle = GOOD + RNG.uniform(0, 0.1, (6, 3))
    found = standings(results({"poor": POOR, "good": GOOD, "middle": middle}))
    assert len(found.pairs) == 3
    assert [pair.p_adjusted for pair in found.pairs] == holm(
        [pair.p_value for pair in found.pairs]
    ).tolist()


def test_a_constant_difference_is_not_significant_with_few_realizations():
    found = standings(results({"good": [[0.1]] * 3, "poor": [[0.2]] * 3}))
    assert found.pairs[0].p_value == 0.25  # the probability that all signs are equal


def test_baselines_are_neither_best_nor_ranked():
    tables = {"poor": POOR, "all": GOOD[:, :1], "middle": POOR - 0.01}
    first, second = results(tables), results(tables, data="there")
    both = Results(first.tasks + second.tasks, (), first.metrics)
    found = standings(both, baselines=["all"])
    assert [row.method for row in found.of("here")] == ["middle", "poor", "all"]
    assert found.ranks.methods == ("poor", "middle")
    assert found.ranks.ranks.tolist() == [2, 1]


def test_a_method_with_its_own_size_has_no_curve():
    row = standings(results({"own": GOOD[:, :1]})).rows[0]
    assert row.curve == ()
    assert row.size == row.enough == 3
    assert row.mean == pytest.approx(GOOD[:, 0].mean())


def test_the_greatest_score_is_best_if_greater_is_better():
    found = standings(results({"low": GOOD, "high": GOOD + 0.5}, "auc"))
    assert found.rows[0].method == "high"
    assert found.rows[0].size == SIZES[GOOD.mean(axis=0).argmax()]


def test_failed_realizations_are_counted_and_left_out():
    failures = [Failure("good", "here", 7, "ValueError: no")]
    row = standings(results({"good": GOOD}, failures=failures)).rows[0]
    assert (row.n_realizations, row.n_failed) == (6, 1)


def test_one_realization_has_no_error_and_no_test():
    found = standings(results({"good": GOOD[:1], "poor": POOR[:1]}))
    assert np.isnan(found.rows[0].error)
    assert found.pairs == ()
    assert found.rows[0].stability is None


def test_a_metric_that_was_not_measured_is_refused():
    with pytest.raises(InvalidParameter, match="one of the metrics error, not 'auc'"):
        standings(results({"good": GOOD}), "auc")
