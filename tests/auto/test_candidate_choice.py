"""The rule of Auto, against loops over its definition."""

import numpy as np
import pytest

from tamis.auto.candidate_choice import Allowed, Draws, Losses, paired_errors, select_candidates
from tamis.auto.machine import couple

#: Standard errors, and shares of the loss that they may not exceed.
RULES = [Allowed(0.0), Allowed(0.25), Allowed(1.0), Allowed(1.0, 0.03), Allowed(2.0, gain=0.1)]


def selected_by_loops(losses, errors, sizes, allowed, baseline):
    """Return the first candidate with the lowest loss among those of the smallest allowed size."""
    best = min(range(len(sizes)), key=lambda c: losses[c])
    close = []
    for c in range(len(sizes)):
        gain = max(baseline - losses[best], 0.0)
        limit = min(allowed.n_errors * errors[c][best], allowed.share * losses[best])
        limit = min(limit, allowed.gain * gain) if allowed.gain < 9 else limit
        if losses[c] <= losses[best] + limit:
            close.append(c)
    size = min(sizes[c] for c in close)
    return min((c for c in close if sizes[c] == size), key=lambda c: (losses[c], c))


#: Loss of the baseline.
HIGH = np.array([9.0])


def tables(n_tables=60):
    rng = np.random.default_rng(0)
    for _ in range(n_tables):
        n, m = rng.integers(5, 40), rng.integers(1, 12)
        difficulty = rng.random((n, 1))
        yield difficulty + 0.2 * rng.random((n, m)), rng.choice([1, 2, 5, 10], size=m)


@pytest.mark.parametrize("allowed", RULES)
def test_the_selected_candidate_agrees_with_a_loop(allowed):
    found, loops = [], []
    for losses, sizes in tables():
        errors = paired_errors(losses)
        base = np.linspace(0.5, 1.5, len(losses))
        found += select_candidates(losses, errors, sizes, allowed, base).tolist()
        loops += [
            selected_by_loops(row, errors, sizes, allowed, nothing)
            for row, nothing in zip(losses.tolist(), base, strict=True)
        ]
    assert found == loops
    assert len(set(found)) > 3


def test_ties_go_to_the_first():
    losses = np.array([[1.0, 0.5, 0.5, 0.5]])
    errors = np.full((4, 4), 0.1)
    assert select_candidates(losses, errors, np.array([1, 2, 2, 5]), Allowed(0.25), HIGH) == [1]


def test_the_standard_error_is_that_of_the_paired_differences():
    """Candidates that fail on the same rows differ by little, though each loss varies a lot."""
    rng = np.random.default_rng(0)
    hard = rng.exponential(size=300)
    rows = np.column_stack([hard + 0.05, hard + 0.02 * rng.normal(size=300)])
    draws = Draws.of(300, np.random.default_rng(1))
    losses = draws.part(draws.weights @ rows / draws.weights.sum(axis=1, keepdims=True))
    errors = paired_errors(losses.drawn)
    apart = np.std(rows[:, 0] - rows[:, 1], ddof=1) / np.sqrt(300)
    assert errors[0, 1] == pytest.approx(apart, rel=0.15)
    sizes = np.array([1, 5])  # alone, the standard error of each loss is larger than 0.05
    assert losses.drawn[:, 0].std() > 0.05
    assert select_candidates(losses.whole[None], errors, sizes, Allowed(1.0), HIGH) == [1]


def test_a_small_list_keeps_most_of_a_small_gain():
    """With 3 % positives, a noise column has nearly the loss of the best list."""
    losses, errors = np.array([[0.0581, 0.0565]]), np.full((2, 2), 0.001)
    sizes, baseline = np.array([1, 5]), np.array([0.0582])
    assert select_candidates(losses, errors, sizes, Allowed(2.0, 0.05), baseline) == [0]
    assert select_candidates(losses, errors, sizes, Allowed(2.0, 0.05, 0.2), baseline) == [1]


def test_a_large_share_of_the_loss_in_few_rows_does_not_hide_a_better_list():
    losses, errors = np.array([[0.06, 0.05]]), np.full((2, 2), 0.02)
    sizes = np.array([1, 5])
    assert select_candidates(losses, errors, sizes, Allowed(1.0), HIGH) == [0]
    assert select_candidates(losses, errors, sizes, Allowed(1.0, 0.05), HIGH) == [1]


def test_no_rise_is_allowed_above_a_loss_of_0():
    losses, errors = np.array([[0.05, 0.0, 0.0]]), np.zeros((3, 3))
    for allowed in RULES:
        assert select_candidates(losses, errors, np.array([1, 2, 5]), allowed, HIGH) == [1]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_draw_has_rows_or_groups_and_leaves_out_the_others(grouped):
    groups = np.arange(30) // 3 if grouped else None
    weights = np.linspace(1, 2, 30)
    draws = Draws.of(30, np.random.default_rng(3), groups, weights, n_draws=40)
    whole, drawn, left_out = draws.part(draws.weights)
    assert len(drawn) == len(left_out) == 40
    np.testing.assert_allclose(whole, weights)
    assert (((drawn > 0) + (left_out > 0)) == 1).all()  # each row is drawn or left out
    counts = drawn / weights
    np.testing.assert_allclose(counts, np.rint(counts))
    np.testing.assert_allclose(counts.sum(axis=1), 30)
    if grouped:
        assert (np.ptp(counts.reshape(40, 10, 3), axis=2) < 1e-12).all()


def test_the_loss_of_the_best_of_many_candidates_is_corrected():
    rng = np.random.default_rng(0)
    rows = 1 + 0.5 * rng.normal(size=(40, 60))  # all candidates have the mean 1
    sizes = np.repeat([1, 2, 5], 20)
    draws = Draws.of(40, rng)
    losses = draws.part(draws.weights @ rows / draws.weights.sum(axis=1, keepdims=True))
    errors = paired_errors(losses.drawn)
    (best,) = select_candidates(losses.whole[None], errors, sizes, Allowed(0.0), HIGH)
    of_draw = select_candidates(losses.drawn, errors, sizes, Allowed(0.0), np.full(200, 9.0))
    assert losses.whole[best] < 0.88
    assert abs(losses.of(of_draw).honest - 1) < 0.06


def test_a_draw_that_leaves_out_no_row_is_ignored():
    losses = Losses(np.array([1.0]), np.array([1.0, 2.0]), np.array([np.nan, 3.0]))
    assert losses.honest == 3.0


def test_probabilities_of_several_classes_follow_from_those_of_pairs():
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    pairs = np.column_stack(
        [shares[:, a] / (shares[:, a] + shares[:, b]) for a, b in [(0, 1), (0, 2), (1, 2)]]
    )
    np.testing.assert_allclose(couple(pairs, 3), shares, rtol=1e-12)
    sure = couple(np.array([[1.0, 1.0, 0.5]]), 3)
    assert sure[0, 0] > 0.999
