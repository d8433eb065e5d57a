"""Scores, folds, weights and groups of the automatic selection."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

import tamis
from tamis.auto import Auto
from tamis.contract import Record
from tamis.exceptions import InvalidParameter, InvalidTarget, NothingFound
from tests.behaviour import Stop

#: Information and ridge only.
QUICK = Auto(budget=0.25, random_state=0)


def rare(n=1000, share=0.05, seed=0, d=8):
    """Return a table in which columns 0 and 1 are relevant, with a given share of positives."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, (score > np.quantile(score, 1 - share)).astype(int)


# ------------------------------------------------------------------------------ a rare target


def test_auc_and_average_precision_are_reported_for_a_rare_target():
    X, y = rare()
    found = clone(QUICK).fit(X, y)
    assert {0, 1} <= set(found.columns)
    assert found.significant_
    scores = found.error_.scores
    assert scores["roc_auc"][0] > 0.9
    assert scores["average_precision"][0] > 5 * found.error_guess_.scores["average_precision"][0]
    assert found.error_guess_.scores["roc_auc"][0] == pytest.approx(0.5)
    assert "AUC 0.9" in found.summary()
    assert "average precision" in found.summary()


def test_a_noise_list_is_never_offered_for_a_rare_target():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 12))
    y = (rng.random(2000) < 0.03).astype(int)
    with pytest.warns(NothingFound, match="significantly better than the baseline"):
        found = clone(QUICK).fit(X, y)
    assert not found.support_.any()
    assert not found.significant_
    asked = clone(QUICK).set_params(n_features_to_select=3).fit(X, y)
    assert not asked.significant_
    assert "not significantly better than the baseline" in asked.choice_.reason
    assert asked.report(X, y).errors.lost is None  # "nothing lost" is not printed


def test_a_weak_signal_with_few_positives_is_found():
    """A single noise column and the right list have the same error, that of the majority class."""
    X, y = rare(3000, 0.03, seed=1, d=10)
    found = clone(QUICK).fit(X, y)
    assert found.error_.wrong <= found.error_guess_.wrong
    assert set(found.columns) >= {0, 1}


# ------------------------------------------------------------------------------ scores


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "neg_log_loss"])
def test_a_classification_score_decides_the_selection(scoring):
    X, y = rare(400, 0.3)
    found = clone(QUICK).set_params(scoring=scoring).fit(X, y)
    assert set(found.columns) >= {0, 1}
    name = scoring.removeprefix("neg_")
    value, error = found.error_.scores[name]
    if scoring == "neg_log_loss":
        assert value == pytest.approx(found.error_.loss)
        assert 0 < value < found.error_guess_.loss
    else:
        assert value == pytest.approx(1 - found.error_.loss)
    assert error > 0
    assert found.error_lost_.scores.keys() == found.error_.scores.keys()


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_a_regression_score_decides_the_selection(scoring):
    X, _ = rare(300)
    y = X[:, 0] - X[:, 1] + 0.5 * np.random.default_rng(1).normal(size=300)
    found = clone(QUICK).set_params(scoring=scoring).fit(X, y)
    assert found.columns == [0, 1]
    assert found.error_.r2 == pytest.approx(1 - 0.25 / 2.25, abs=0.05)
    if scoring == "neg_mean_absolute_error":
        assert found.error_.scores["mean_absolute_error"][0] == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(
    "scoring",
    [
        "f1",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("accuracy", make_scorer(f1_score))),
    ],
)
def test_scores_that_count_rows_are_reported_and_the_squared_loss_decides(scoring):
    X, y = rare(300, 0.3)
    plain = clone(QUICK).fit(X, y)
    found = clone(QUICK).set_params(scoring=scoring).fit(X, y)
    assert_array_equal(found.support_, plain.support_)
    assert found.error_[:4] == plain.error_[:4]
    (name,) = found.error_.scores
    assert found.error_.scores[name][0] > found.error_guess_.scores[name][0]


# ------------------------------------------------------------------------------ folds


@pytest.mark.parametrize(
    "cv",
    [3, KFold(4), ShuffleSplit(6, random_state=0), RepeatedKFold(n_splits=3, n_repeats=2),
     TimeSeriesSplit(4), PredefinedSplit(np.arange(200) % 3)],
)  # fmt: skip
def test_folds_of_scikit_learn(cv):
    X, y = rare(200, 0.4)
    found = clone(QUICK).set_params(cv=cv).fit(X, y)
    again = clone(QUICK).set_params(cv=cv, n_jobs=2).fit(X, y)
    assert found.curve_ == again.curve_
    assert set(found.columns) >= {0, 1}


def test_folds_may_be_given_by_indices_or_masks():
    X, y = rare(200, 0.4)
    pairs = list(KFold(4, shuffle=True, random_state=1).split(X))
    masks = [tuple(np.isin(np.arange(200), part) for part in pair) for pair in pairs]
    of_pairs, of_masks = (clone(QUICK).set_params(cv=cv).fit(X, y) for cv in (pairs, masks))
    assert of_pairs.curve_ == of_masks.curve_
    # a finished record has no rows, so the run is stopped before the last round
    begun = clone(QUICK).set_params(cv=pairs).set_callbacks(Stop(3)).fit(X, y)
    rounds = begun.record_.trace.state["rounds"]
    assert [one[0] for one in rounds.values()] == [test.tolist() for _, test in pairs[:3]]


@pytest.mark.parametrize(
    ("cv", "sentence"),
    [
        ([(np.arange(5), np.array([900]))], "indices below 60"),
        ([np.arange(60)], "as a pair"),
        ([(np.arange(50), np.arange(50, 60))], "at least 2 pairs"),
        (KFold(100), "cannot split the 60 rows"),
        (GroupKFold(3), "groups"),
    ],
)
def test_invalid_folds_are_refused(cv, sentence):
    X, y = rare(60, 0.4)
    with pytest.raises(InvalidParameter, match=sentence):
        clone(QUICK).set_params(cv=cv).fit(X, y)


def test_a_resumed_run_uses_the_same_random_splits():
    X, y = rare(100, 0.4)
    asked = clone(QUICK).set_params(cv=ShuffleSplit(4))
    whole, begun = clone(asked).fit(X, y), clone(asked).set_callbacks(Stop(3)).fit(X, y)
    assert not begun.record_.finished
    saved = Record.from_dict(begun.record_.to_dict())
    assert clone(asked).resume(X, y, record=saved).curve_ == whole.curve_


# ------------------------------------------------------------------------------ weights


def test_sample_weights_change_the_selection():
    """The two halves of the table have different relevant columns. Weights select a half."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    half = np.arange(400) < 200
    y = np.where(half, X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=400)
    for of, column in ((half, 0), (~half, 1)):
        found = clone(QUICK).fit(X, y, sample_weight=np.where(of, 1.0, 1e-6))
        assert found.columns == [column]
        assert found.error_.rmse == pytest.approx(0.3, abs=0.1)
        none = clone(QUICK).fit(X, y, sample_weight=of.astype(float))
        assert none.columns == [column]


def test_equal_weights_do_not_change_the_selection():
    X, y = rare(200, 0.4)
    plain, weighed = clone(QUICK).fit(X, y), clone(QUICK).fit(X, y, sample_weight=np.full(200, 3.0))
    assert_array_equal(plain.order_, weighed.order_)
    assert plain.error_.loss == pytest.approx(weighed.error_.loss)


@pytest.mark.parametrize(
    "weights",
    [np.ones(9), -np.ones(200), np.full(200, np.nan), np.arange(200) < 3, ["a"] * 200],
)
def test_invalid_weights_are_refused(weights):
    with pytest.raises(InvalidParameter, match=r"200 finite numbers of at least 0.* 4 above 0"):
        clone(QUICK).fit(*rare(200, 0.4), sample_weight=weights)


def test_class_weights_apply_to_the_errors_too():
    X, y = rare(600, 0.1)
    found = clone(QUICK).set_params(class_weight="balanced").fit(X, y)
    assert found.error_guess_.wrong == pytest.approx(0.5, abs=0.05)
    assert found.error_.wrong < 0.25
    assert set(found.columns) >= {0, 1}
    by_dict = clone(QUICK).set_params(class_weight={0: 600 / 1080, 1: 5.0}).fit(X, y)
    assert by_dict.error_.loss == pytest.approx(found.error_.loss)
    with pytest.raises(InvalidParameter, match="cannot use class_weight"):
        clone(QUICK).set_params(class_weight="even").fit(X, y)


# ------------------------------------------------------------------------------ censored targets


def censored(n=300, d=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time = rng.exponential(np.exp(-X[:, 2] + X[:, 6]))
    stop = rng.exponential(2.0, size=n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= stop, np.minimum(time, stop)
    return X, y


def test_censored_targets_are_selected_by_cox_models():
    X, y = censored()
    found = clone(QUICK).fit(X, y)
    assert found.columns == [2, 6]
    assert (found.path_, found.model_) == ("cox", "cox")
    assert found.error_.scores["concordance"][0] > 0.7
    assert found.error_guess_.scores["concordance"][0] == 0.5
    assert "concordance 0.7" in found.summary()
    risk = clone(found.estimator_).fit(found.transform(X), y).predict(found.transform(X))
    assert np.corrcoef(risk, X[:, 6] - X[:, 2])[0, 1] < -0.9
    page = found.report(X, y)
    assert page.errors.kept.value > page.errors.guess == 0.5


@pytest.mark.slow
def test_few_columns_are_selected_for_a_censored_target():
    X, y = censored(120, 400)
    found = tamis.select(X, y, random_state=0)
    assert isinstance(found, Auto)
    assert found.n_features_ <= 40
    assert found.support_[[2, 6]].all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingFound)
        found_in_noise = [
            tamis.select(
                X, np.random.default_rng(seed).permutation(y), random_state=seed
            ).n_features_
            for seed in range(5)
        ]
    # one table of noise in ten has a column by chance
    assert np.count_nonzero(found_in_noise) <= 2


# ------------------------------------------------------------------------------ by select


def business(n=300):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n))
    y = np.where(a + b + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), unit="D")
    return pd.DataFrame(
        {"a": a, "b": b, "c": rng.normal(size=n), "customer": rng.integers(60, size=n).astype(str),
         "weight": rng.uniform(1, 2, size=n), "when": day, "y": y}
    )  # fmt: skip


def test_groups_and_weights_may_be_columns_of_the_frame():
    frame = business()
    named = tamis.select(frame, target="y", method=QUICK, groups="customer", sample_weight="weight")
    rest = frame.drop(columns=["customer", "weight"])
    given = tamis.select(rest, target="y", method=QUICK, groups=frame["customer"],
                         sample_weight=frame["weight"].to_numpy())  # fmt: skip
    assert named.columns == given.columns == ["a", "b"]
    assert named.search_.curve_ == given.search_.curve_
    assert list(named.kinds_) == ["a", "b", "c", "when"]
    with pytest.raises(InvalidParameter, match=r"groups to name one column of X.*Did you mean"):
        tamis.select(frame, target="y", groups="custmer")


def test_folds_in_time_order():
    frame = business().drop(columns=["customer", "weight"])
    found = tamis.select(frame, target="y", method=QUICK, cv="time:when")
    ordered = frame.sort_values("when")
    same = tamis.select(ordered, target="y", method=clone(QUICK).set_params(cv=TimeSeriesSplit()))
    assert found.columns == same.columns
    assert found.search_.curve_ == same.search_.curve_
    as_polars = tamis.select(pl.from_pandas(frame), target="y", method=QUICK, cv="time:when")
    assert as_polars.search_.curve_ == same.search_.curve_
    with pytest.raises(InvalidParameter, match="time:COLUMN"):
        tamis.select(frame, target="y", cv="month")


def test_scoring_is_refused_for_other_methods():
    frame = business()[["a", "b", "y"]]
    with pytest.raises(InvalidParameter, match="scoring is for the automatic selection, and mrmr"):
        tamis.select(frame, target="y", method="mrmr", scoring="roc_auc")


def test_several_targets_are_refused():
    X, _ = rare(100, 0.4)
    with pytest.raises(InvalidTarget, match="one target"):
        tamis.select(X, np.column_stack([X[:, 0], X[:, 1]]))


def test_a_parameter_of_auto_that_is_given_to_fit_is_named():
    X, y = rare(60)
    with pytest.raises(InvalidParameter, match=r"budget is a parameter of Auto.*Auto\(budget="):
        tamis.select(X, y, budget=5)
