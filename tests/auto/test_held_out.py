"""The outcome of Auto from held-out predictions: the selected candidate and its errors."""

import json

import numpy as np
import pytest

from tamis.auto.candidate_choice import Allowed
from tamis.auto.held_out import (
    BASELINE,
    AutoOutcome,
    Gathered,
    HeldOut,
    decide,
    gather,
    pack_predictions,
)
from tamis.auto.measures import SQUARED, Measures, Predictions, measures_of
from tamis.auto.sentences import describe_error
from tamis.auto.target import Truth

N = 400
FOLDS = np.arange(N)[None] % 5


def predictions(values):
    """Return predictions of one repeat of five folds."""
    return Predictions(np.asarray(values, dtype=float).reshape(1, N, -1), FOLDS)


def problem(classes, seed=0):
    """Return a target that three columns predict nearly as well as all nine.

    A single column predicts it worse. Rows that are hard to predict are hard for all candidates.
    """
    rng = np.random.default_rng(seed)
    signal, hard = rng.normal(size=N), 0.7 * rng.normal(size=N)
    y = (signal + hard > 0).astype(int) if classes else signal + hard

    def predicted(noise):
        found = signal + noise * rng.normal(size=N)
        if not classes:
            return predictions(found)
        share = 1 / (1 + np.exp(-2 * found))
        return predictions(np.column_stack([1 - share, share]))

    truth = Truth.of(y, "classification" if classes else "regression")
    keys = [("information", "ridge", 1), ("information", "ridge", 3)]
    keys.append(ALL)
    values = [predicted(0.8), predicted(0.12), predicted(0.1)]
    baseline = predictions(np.broadcast_to(truth.mean, (N, truth.values.shape[1])))
    return Gathered(dict(zip(keys, values, strict=True)), baseline, 9), truth


#: The candidate of :func:`problem` that uses all columns.
ALL = ("information", "ridge", 9)


ONE_ERROR, PLAIN = Allowed(1.0), Measures(SQUARED)


def decided(gathered, truth, allowed=ONE_ERROR, measures=PLAIN, asked=None):
    rules = {"best": Allowed(0.0), "mine": allowed}
    return decide(gathered, truth, measures, rules, "mine", np.random.default_rng(0), asked)


@pytest.mark.parametrize("classes", [False, True])
def test_the_loss_is_compared_row_by_row(classes):
    gathered, truth = problem(classes)
    outcome = decided(gathered, truth, Allowed(1.0, most=3))
    assert (outcome.size, outcome.found) == (3, True)
    mine = gathered.candidates["information", "ridge", 3].values[0]
    whole = gathered.candidates[ALL].values[0]
    rows = [((values - truth.values) ** 2).sum(axis=1) for values in (mine, whole)]
    lost = outcome.lost
    assert lost.loss == pytest.approx(outcome.error.loss - outcome.error_all.loss)
    apart = np.std(rows[0] - rows[1], ddof=1) / N**0.5
    assert lost.standard_error == pytest.approx(apart, rel=0.2)
    assert lost.standard_error < outcome.error.standard_error / 2  # the hard rows are ignored
    if classes:
        wrong = [values.argmax(axis=1) != truth.codes for values in (mine, whole)]
        assert outcome.error.wrong == pytest.approx(wrong[0].mean(), abs=0.01)
        spread = np.std(wrong[0] - wrong[1].astype(float), ddof=1) / N**0.5
        assert lost.wrong_error == pytest.approx(spread, rel=0.25)
    else:
        assert lost.rmse == pytest.approx(outcome.error.rmse - outcome.error_all.rmse)
        assert outcome.error.r2 == pytest.approx(1 - rows[0].mean() / truth.values.var(), abs=0.02)


def test_an_outcome_can_be_restored_from_a_record():
    gathered, truth = problem(True)
    measures = measures_of("roc_auc", "classification", np.array([0, 1]), [200, 200])
    outcome = decided(gathered, truth, measures=measures)
    plain = json.loads(json.dumps(outcome.to_dict()))
    assert AutoOutcome.from_dict(plain) == outcome
    assert outcome.error.scores["roc_auc"][0] == pytest.approx(1 - outcome.error.loss)


def test_all_columns_are_corrected_on_the_same_draws():
    gathered, truth = problem(False)
    same = gathered.candidates["information", "ridge", 3]
    others = gathered.candidates | {ALL: same}
    outcome = decided(gathered._replace(candidates=others), truth)
    assert outcome.size == 3
    assert outcome.lost.loss == outcome.lost.standard_error == outcome.lost.rmse == 0
    rng = np.random.default_rng(1)  # the better of two equally good ones is not better
    chance = {(*ALL[:1], name, 9): predictions(rng.normal(size=N)) for name in ("ridge", "trees")}
    outcome = decided(gathered._replace(candidates=gathered.candidates | chance), truth)
    assert outcome.error_all.loss > outcome.curve_all.loss


def test_the_error_includes_the_uncertainty_of_the_choice():
    """A single row decides the selection.

    Without it a different candidate is selected, which fails on it.
    """
    truth = Truth.of(np.zeros(N), "regression")
    one, two = np.ones(N), np.full(N, 1.05)
    one[0] = 20.0
    keys = [("information", "ridge", 1), ("information", "machine", 1)]
    candidates = {keys[0]: predictions(one), keys[1]: predictions(two)}
    both = Gathered(candidates, predictions(np.full(N, 3.0)), 5)
    outcome = decided(both, truth, Allowed(0.0))
    assert outcome.model == "machine"
    assert outcome.error.loss > 1.2  # from the draws without that row


def test_no_loss_is_reported_if_all_columns_are_selected():
    gathered, truth = problem(True)
    fewer = {key: of for key, of in gathered.candidates.items() if key != ALL}
    outcome = decided(gathered._replace(candidates=fewer, n_units=3), truth)
    assert outcome.size == 3
    assert outcome.error_all == outcome.error
    assert outcome.lost is None


def test_each_rule_selects_a_list_that_is_compared_with_the_best_one():
    gathered, truth = problem(True)
    outcome = decided(gathered, truth, Allowed(3.0))
    best, mine = outcome.lists["best"], outcome.lists["mine"]
    assert (best.size, mine.size) == (9, 3)
    assert best.lost.loss == best.lost.wrong == 0
    assert mine.lost.loss == pytest.approx(mine.error.loss - best.error.loss)
    assert mine.lost.standard_error < mine.error.standard_error / 2
    assert decided(gathered, truth, asked=1).lists["mine"].size == 1


def test_a_list_that_is_not_significantly_better_than_the_baseline_is_not_offered():
    gathered, truth = problem(False)
    rng = np.random.default_rng(3)
    mean = gathered.baseline.values[0, :, 0]
    key = ("information", "ridge", 1)
    for gain, found in ((0.0, False), (0.004, False), (0.3, True)):
        shifted = mean + gain * truth.values[:, 0] + 0.05 * rng.normal(size=N)
        only = gathered._replace(candidates={key: predictions(shifted)})
        outcome = decided(only, truth)
        assert outcome.found is found
        assert outcome.size == found
        assert decided(only, truth, asked=1).size == 1
    assert outcome.error != outcome.error_guess


def test_a_rank_score_is_tested_by_the_squared_loss():
    """A model of noise may have the better AUC by chance, but its squared loss is worse."""
    rng = np.random.default_rng(0)
    truth = Truth.of((rng.random(N) < 0.5).astype(int), "classification")
    share = np.clip(rng.random(N) + 0.2 * (truth.codes - 0.5), 0, 1)  # right order, wrong scale
    candidates = {("information", "ridge", 1): predictions(np.column_stack([1 - share, share]))}
    baseline = predictions(np.broadcast_to(truth.mean, (N, 2)))
    gathered = Gathered(candidates, baseline, 9)
    by_auc = measures_of("roc_auc", "classification", np.arange(2), (N // 2, N // 2))
    outcome = decided(gathered, truth, measures=by_auc, asked=1)
    value, error = outcome.error.scores["roc_auc"]
    assert value - 0.5 > 3 * error
    assert not outcome.found


@pytest.mark.parametrize(("effect", "found"), [(1.5, True), (0.0, False)])
def test_a_clear_signal_of_a_rare_class_is_found_by_its_auc(effect, found):
    """With 20 positives a forest's probabilities are too rough for the squared loss."""
    rng = np.random.default_rng(0)
    truth = Truth.of((np.arange(N) % 20 == 0).astype(int), "classification")
    share = np.clip(0.1 * (rng.normal(size=N) + effect * truth.codes) + 0.2, 0, 1)
    candidates = {("information", "ridge", 1): predictions(np.column_stack([1 - share, share]))}
    baseline = predictions(np.broadcast_to(truth.mean, (N, 2)))
    gathered = Gathered(candidates, baseline, 9)
    rare = measures_of(None, "classification", np.arange(2), (N - 20, 20))
    assert not decided(gathered, truth, measures=rare._replace(rare_auc=None)).found
    assert decided(gathered, truth, measures=rare).found is found


def test_repeats_of_a_row_are_averaged_and_rows_in_no_fold_are_left_out():
    truth = Truth.of(np.arange(6.0), "regression")
    rounds = []
    for repeat, shift in enumerate((0.0, 0.4)):
        for rows in ([1, 3], [2, 5]):  # rows 0 and 4 are in no test fold
            values = truth.values[rows] + shift
            packed = pack_predictions(values, truth.centre)
            base = pack_predictions(np.full((2, 1), 2.0 + repeat), truth.centre)
            entries = [[*BASELINE, 0], ["information", "ridge", 1, 1]]
            rounds.append([rows, {}, entries, [base, packed]])
    gathered = gather(rounds, truth, 3)
    held = gathered.candidates["information", "ridge", 1]
    assert held.values.shape == (2, 6, 1)
    np.testing.assert_array_equal(np.flatnonzero(gathered.is_held_out), [1, 2, 3, 5])
    rows = np.flatnonzero(gathered.is_held_out)
    losses = SQUARED.losses(
        Predictions(held.values[:, rows], held.folds[:, rows]), truth.take(rows), np.ones((1, 4))
    )
    assert losses == pytest.approx([0.08], rel=1e-5)


def test_predictions_far_from_0_keep_their_digits():
    truth = Truth.of(1e9 + np.arange(5.0), "regression")
    packed = pack_predictions(truth.values + 0.25, truth.centre)
    found = gather([[list(range(5)), {}, [[*BASELINE, 0]], [packed]]], truth, 3)
    np.testing.assert_allclose(found.baseline.values[0] - truth.values, 0.25, atol=1e-6)


def test_a_spread_that_rounds_to_0_is_not_printed():
    assert describe_error(HeldOut(0.1, 0.1, 0.005, 0.0004)) == "0.5 % error"
    assert describe_error(HeldOut(0.1, 0.1, 0.005, None)) == "0.5 % error"
    assert describe_error(HeldOut(0.1, 0.1, 0.024, 0.006)) == "2.4 ± 0.6 % error"
    rare = HeldOut(0.1, 0.1, 0.03, 0.002, scores={"roc_auc": (0.8123, 0.02)})
    assert describe_error(rare) == "3.0 ± 0.2 % error, AUC 0.812 ± 0.020"


def test_only_the_best_list_may_have_more_columns_than_a_rule_allows():
    gathered, truth = problem(True)
    outcome = decided(gathered, truth, Allowed(0.0, most=3))
    assert (outcome.lists["best"].size, outcome.size) == (9, 3)
    assert decided(gathered, truth, Allowed(0.0, most=0)).size == 9  # all candidates have more
