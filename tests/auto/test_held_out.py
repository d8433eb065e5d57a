"""What few columns lose against all of them is a mean of differences, row by row."""

import json

import numpy as np
import pytest

from tamis.auto.held_out import AutoOutcome, Gathered, HeldOut, outcome_of
from tamis.auto.rule import Allowed
from tamis.auto.saying import spoken

N = 400


def gathered(classes):
    """Losses of two sizes, of all columns and of a guess: rows that are hard are so for all."""
    rng = np.random.default_rng(0)
    hard = rng.exponential(size=N)
    whole = 0.5 * hard
    losses = np.column_stack([0.9 * hard, whole + 0.02 + 0.01 * rng.normal(size=N)])
    keys = [("information", "ridge", 1), ("information", "ridge", 3)]
    wrong = (losses > 0.6).astype(float) if classes else None
    everything = {"ridge": (whole, (whole > 0.58).astype(float) if classes else None)}
    guess = (hard + 1, np.ones(N) if classes else None)
    return Gathered(keys, losses, wrong, everything, guess, 9)


@pytest.mark.parametrize("classes", [False, True])
def test_the_loss_is_compared_row_by_row(classes):
    found = gathered(classes)
    outcome = outcome_of(found, Allowed(1.0), np.random.default_rng(0), None, True)
    column = found.keys.index((outcome.path, outcome.model, outcome.size))
    mine, whole = found.losses[:, column], found.everything["ridge"][0]
    lost = outcome.lost
    assert lost.loss == outcome.error.loss - outcome.error_all.loss
    assert lost.standard_error == pytest.approx(np.std(mine - whole, ddof=1) / N**0.5)
    assert lost.standard_error < outcome.error.standard_error / 5  # the hard rows do not count
    if classes:
        apart = found.wrong[:, column] - found.everything["ridge"][1]
        assert lost.wrong == outcome.error.wrong - outcome.error_all.wrong
        assert lost.wrong_error == pytest.approx(np.std(apart, ddof=1) / N**0.5)
    else:
        assert lost.rmse == pytest.approx(outcome.error.rmse - outcome.error_all.rmse)
        draws = np.random.default_rng(1).integers(N, size=(2000, N))
        roots = np.sqrt(mine[draws].mean(axis=1)) - np.sqrt(whole[draws].mean(axis=1))
        assert lost.rmse_error == pytest.approx(roots.std(), rel=0.15)  # the bootstrap's


def test_it_survives_a_record_and_older_ones_are_read():
    outcome = outcome_of(gathered(True), Allowed(1.0), np.random.default_rng(0), None, True)
    plain = json.loads(json.dumps(outcome.to_dict()))
    assert AutoOutcome.from_dict(plain) == outcome
    del plain["lost"], plain["curve_all"]
    plain["all_model"] = "ridge"
    older = AutoOutcome.from_dict(plain)
    assert older.lost is older.curve_all is None
    assert older.error_all == outcome.error_all


def test_all_columns_are_corrected_on_the_same_draws():
    found = gathered(False)
    both = found._replace(everything={"ridge": (found.losses[:, 1], None)})
    outcome = outcome_of(both, Allowed(1.0), np.random.default_rng(0), None, True)
    assert outcome.size == 3
    assert outcome.lost == (0.0, 0.0, None, None, 0.0, 0.0)
    assert outcome.curve_all.loss == found.losses[:, 1].mean()
    rng = np.random.default_rng(1)  # the better of two that are the same is no better
    chance = {name: (rng.exponential(size=N), None) for name in ("ridge", "trees")}
    outcome = outcome_of(found._replace(everything=chance), Allowed(1.0), rng, None, True)
    assert outcome.error_all.loss > outcome.curve_all.loss


def test_doubt_of_the_choice_is_in_the_standard_error():
    """Rows that decide what is chosen: without them another candidate is taken, and fails there."""
    losses = np.column_stack([np.full(N, 1.0), np.full(N, 1.1)])
    losses[0, 0] = 400.0  # one row speaks for the second
    both = Gathered(
        [("information", "ridge", 1), ("information", "machine", 1)], losses, None,
        {"ridge": (losses[:, 1], None)}, (np.full(N, 9.0), None), 5,
    )  # fmt: skip
    outcome = outcome_of(both, Allowed(0.0), np.random.default_rng(0), None, False)
    assert outcome.model == "machine"
    assert outcome.error.loss > 1.5  # by the draws that had not seen that row
    assert outcome.lost.loss < 2 * outcome.lost.standard_error


def test_where_all_columns_are_kept_nothing_is_lost():
    found = gathered(True)._replace(n_units=3)
    outcome = outcome_of(found, Allowed(1.0), np.random.default_rng(0), None, True)
    assert outcome.size == 3
    assert outcome.error_all == outcome.error
    assert outcome.lost is None


def test_a_spread_that_would_be_written_as_0_is_not():
    assert spoken(HeldOut(0.1, 0.1, 0.005, 0.0004)) == "0.5 % wrong"
    assert spoken(HeldOut(0.1, 0.1, 0.005, None)) == "0.5 % wrong"
    assert spoken(HeldOut(0.1, 0.1, 0.024, 0.006)) == "2.4 ± 0.6 % wrong"
