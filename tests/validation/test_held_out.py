"""Losses of held-out rows, compared with loops over rows."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.datasets import load_diabetes, load_wine
from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import brier_score_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from tamis.criteria import FisherScore
from tamis.evaluation import CrossValidation, Realizations, Steps, Store, compare, evaluate
from tamis.exceptions import DamagedRow, InvalidParameter, TamisError
from tamis.meta import HonestSize
from tamis.search import Ranking
from tamis.validation.held_out import (
    encode_target,
    held_out_losses,
    missed,
    probabilities,
    squared_losses,
)

WINE = load_wine(return_X_y=True)


def by_rows(model, X, y):
    """Return the Brier score of each row, one class after another."""
    found = []
    for x, truth in zip(X, y, strict=True):
        shares = dict(zip(model.classes_, model.predict_proba([x])[0], strict=True))
        labels = {*shares, truth}
        found.append(sum((shares.get(c, 0.0) - (c == truth)) ** 2 for c in labels))
    return np.array(found)


def test_losses_of_probabilities_agree_with_a_loop():
    X, y = WINE[0], np.array(["x", "y", "z"])[WINE[1]]
    model = GaussianNB().fit(X[::2], y[::2])
    losses = squared_losses(model, X[1::2], y[1::2])
    assert_allclose(losses, by_rows(model, X[1::2], y[1::2]), rtol=1e-12)
    scikit = brier_score_loss(y[1::2], model.predict_proba(X[1::2]), scale_by_half=False)
    assert losses.mean() == pytest.approx(scikit)


def test_a_class_without_training_rows_has_a_loss_of_at_least_one():
    X, y = WINE
    model = GaussianNB().fit(X[y > 0], y[y > 0])
    losses = squared_losses(model, X, y)
    assert_allclose(losses, by_rows(model, X, y), rtol=1e-12)
    assert (losses[y == 0] >= 1).all()


def test_without_probabilities_a_wrong_class_costs_2():
    X, y = WINE
    model = RidgeClassifier().fit(X[::2], y[::2])
    assert_array_equal(squared_losses(model, X, y), 2 * missed(model, X, y))
    assert_array_equal(missed(model, X, y), model.predict(X) != y)


def test_decision_values_are_used_as_log_odds():
    X, y = WINE
    for labels in (y, y == 1):
        model = LogisticRegression(max_iter=5000).fit(StandardScaler().fit_transform(X), labels)
        asked = StandardScaler().fit_transform(X)
        expected = model.predict_proba(asked)

        class Bare(type(model)):
            predict_proba = property()

        bare = Bare()
        bare.__dict__.update(model.__dict__)
        assert not hasattr(bare, "predict_proba")
        assert_allclose(probabilities(bare, asked, margins=True)[1], expected, atol=1e-12)


def test_votes_of_pairs_are_not_used_as_log_odds():
    X, y = load_wine(return_X_y=True)
    y = np.where(np.arange(len(y)) % 7 == 0, 3, y)  # four classes, six pairs
    model = SVC(decision_function_shape="ovo").fit(X, y)
    shares = probabilities(model, X, margins=True)[1]
    assert set(shares.ravel()) == {0.0, 1.0}


def test_losses_of_numbers_agree_with_a_loop():
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X[::2], y[::2])
    expected = [(p - t) ** 2 for p, t in zip(model.predict(X), y, strict=True)]
    assert_allclose(squared_losses(model, X, y), expected)
    several = np.column_stack([y, 2 * y])
    model = LinearRegression().fit(X, several)
    expected = ((model.predict(X) - several) ** 2).sum(axis=1)
    assert_allclose(squared_losses(model, X, several), expected)


@pytest.mark.parametrize("estimator", [None, LogisticRegression(), LinearSVC()], ids=str)
def test_losses_of_held_out_rows_agree_with_a_direct_computation(estimator):
    X, y = WINE
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 2)
    scale = StandardScaler().fit(X[train])
    known, asked = scale.transform(X[train]), scale.transform(X[test])
    if estimator is None:
        truth = np.eye(3)[y]
        model = Ridge().fit(known, truth[train])
        expected = ((model.predict(asked) - truth[test]) ** 2).sum(axis=1)
    else:
        expected = squared_losses(estimator.fit(known, y[train]), asked, y[test])
    found = held_out_losses(estimator, X, y, train, test, "classification")
    assert_allclose(found, expected, rtol=1e-6)


def test_without_columns_the_class_shares_are_predicted():
    y = np.array([0, 0, 1, 1, 1])
    train, test = np.array([0, 1, 2, 3]), np.array([4])
    assert_allclose(
        held_out_losses(None, np.empty((5, 0)), y, train, test, "classification"), [0.5]
    )
    assert_array_equal(encode_target(y, "regression"), y[:, None])


def test_a_regressor_works_for_classes():
    X, y = WINE
    labels = np.array(["x", "y", "z"])[y]
    common = {"random_state": 0, "n_folds": 3}
    ours = HonestSize(Ranking(FisherScore()), **common).fit(X, labels)
    theirs = HonestSize(Ranking(FisherScore()), Ridge(), **common).fit(X, labels)
    assert_allclose(theirs.losses_, ours.losses_)


# ------------------------------------------------------------------------------ kept by evaluate


def measured(plan=None, **options):
    methods = {"F": SelectKBest(f_classif), "MI": SelectKBest(chi2)}
    data = {"wine": (WINE[0], WINE[1])}
    estimators = {"bayes": GaussianNB(), "ridge": RidgeClassifier()}
    options = {"sizes": [1, 3], "normalise": False, "losses": True, **options}
    plan = CrossValidation(4) if plan is None else plan
    return evaluate(methods, data, plan, ["error", "brier"], estimators=estimators, **options)


def test_every_test_row_has_a_loss():
    found, plan, (X, y) = measured(), CrossValidation(4), WINE
    for i in range(4):
        train, test = plan.split(y, "wine", i)[:2]
        columns = np.argsort(-f_classif(X[train], y[train])[0])[:3]
        model = GaussianNB().fit(X[np.ix_(train, columns)], y[train])
        asked = X[np.ix_(test, columns)]
        for kind, expected in (
            ("squared", by_rows(model, asked, y[test])),
            ("error", model.predict(asked) != y[test]),
        ):
            losses = found.losses("F", kind, estimator="bayes", size=3)
            assert_array_equal(losses[i].rows, test)
            assert_allclose(losses[i].values, expected, atol=1e-12)
    for metric, kind in (("error", "error"), ("brier", "squared")):
        losses = found.losses("MI", kind, estimator="ridge", size=1)
        scores = found.values(metric, "MI", estimator="ridge", size=1)
        assert_allclose([losses[i].values.mean() for i in losses], list(scores.values()))


def test_computing_losses_does_not_change_the_scores():
    assert list(measured(losses=False).rows()) == list(measured().rows())
    assert all(task.outcome.losses == () for task in measured(losses=False).tasks)


def test_losses_of_a_method_that_predicts_and_of_numbers():
    X, y = load_diabetes(return_X_y=True)
    plan = CrossValidation(3)
    found = evaluate({"line": LinearRegression()}, (X, y), plan, "mse", losses=True)
    losses = found.losses("line")
    assert_allclose(
        [losses[i].values.mean() for i in range(3)], list(found.values("mse", "line").values())
    )
    assert_array_equal(np.sort(np.concatenate([part.rows for part in losses.values()])), range(442))
    with pytest.raises(InvalidParameter, match="no losses of rows"):
        found.losses("line", "error")
    # no metric of predictions is needed
    chosen = evaluate(
        SelectKBest(f_classif), WINE, plan, "n_features", estimators=GaussianNB(), losses=True,
        sizes="own",
    )  # fmt: skip
    assert len(chosen.losses(chosen.methods[0])) == 3


def test_steps_with_the_same_columns_share_losses():
    options = {"estimators": GaussianNB(), "losses": True}
    search = Ranking(FisherScore(), n_features_to_select=2)
    found = evaluate({"r": search}, WINE, CrossValidation(3), sizes=Steps([13, 14]), **options)
    last, again = (found.losses("r", rule=f"step {k}")[0] for k in (13, 14))
    assert_array_equal(last.values, again.values)
    plan = CrossValidation(3, inner=2)
    best = evaluate({"r": search}, WINE, plan, sizes="best", **options)
    assert [len(task.outcome.losses) for task in best.tasks] == [2, 2, 2]


def test_a_store_keeps_losses_and_can_read_old_rows(tmp_path):
    path = tmp_path / "store.db"
    plain, asked = measured(store=path, losses=False), measured(store=path)
    with Store(path) as store:
        assert len(store) == 16  # storing losses is a separate task
        texts = list(store.to_frame()["outcome"])
    assert sum('"losses"' in text for text in texts) == 8
    before = [text for text in texts if '"losses"' not in text]
    assert all(set(json.loads(text)) == set(OLD_FIELDS) for text in before)
    again = measured(store=path)
    assert again.tasks == asked.tasks
    assert list(plain.rows()) == list(again.rows())
    loss = max(len(text) for text in texts) - max(len(text) for text in before)
    # 45 test rows, 4 times 0/1 and squares: 8/6 characters per byte, and names
    assert loss < 4 * (45 * 8 * 4 / 3 + 45 / 6) + 45 * 4 * 4 / 3 + 800


OLD_FIELDS = ("scores", "order", "support", "n_train", "n_test", "n_features")


def test_a_changed_loss_is_detected(tmp_path):
    path = tmp_path / "store.db"
    asked = measured(store=path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            'UPDATE task SET outcome = replace(outcome, \'"squared", "\', \'"squared", "A\') '
            "WHERE realization = 2"
        )
    with pytest.warns(DamagedRow):
        again = measured(store=path)
    assert [t.outcome.losses for t in again.tasks] == [t.outcome.losses for t in asked.tasks]


def test_losses_are_refused_if_they_cannot_be_computed():
    with pytest.raises(TamisError, match="losses=True needs an estimator"):
        evaluate(SelectKBest(f_classif), WINE, CrossValidation(3), "n_features", losses=True)
    with pytest.raises(InvalidParameter, match="losses=True or False"):
        measured(losses="squared")
    found = measured()
    with pytest.raises(InvalidParameter, match="choose one of estimator"):
        found.losses("F", size=1)
    with pytest.raises(InvalidParameter, match="kind 'squared' or 'error'"):
        found.losses("F", "absolute")


@pytest.mark.parametrize("repeats", [1, 2])
def test_methods_are_compared_row_by_row(repeats):
    found = measured(CrossValidation(4, n_repeats=repeats))
    for metric, kind in (("error", "error"), ("brier", "squared")):
        tests = compare(found, "F", metric=metric, test="rows").contrasts
        assert len(tests) == 4
        for contrast in tests:
            means = []
            for method in ("F", "MI"):
                table = np.full((178, 4 * repeats), np.nan)
                losses = found.losses(
                    method, kind, estimator=contrast.estimator, size=contrast.size
                )
                for i, (rows, values) in losses.items():
                    table[rows, i] = values
                means.append(np.nanmean(table, axis=1))
            assert contrast.p_value == pytest.approx(stats.ttest_rel(*means).pvalue)
            assert contrast.reference_mean == pytest.approx(means[0].mean())


def test_a_comparison_by_rows_is_refused_if_it_is_not_valid():
    drawn = measured(Realizations(3, train=0.7))
    with pytest.raises(InvalidParameter, match="equally often"):
        compare(drawn, "F", test="rows")
    with pytest.raises(InvalidParameter, match="losses=True"):
        compare(measured(losses=False), "F", test="rows")
    found = evaluate({"a": GaussianNB(), "b": RidgeClassifier()}, WINE, CrossValidation(3), "ber",
                     losses=True)  # fmt: skip
    with pytest.raises(InvalidParameter, match="mean over rows"):
        compare(found, "a", test="rows")
