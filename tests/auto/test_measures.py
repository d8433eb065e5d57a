"""Measures of held-out predictions against scikit-learn and loops."""

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    get_scorer,
    log_loss,
    make_scorer,
    max_error,
    roc_auc_score,
)

from tamis.auto.measures import (
    Predictions,
    area_under_curve,
    average_precision,
    check_scoring,
    measures_of,
)
from tamis.auto.target import Truth
from tamis.exceptions import InvalidParameter


def scores(n=200, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.2
    score = positive + rng.normal(size=n)
    weights = rng.integers(0, 4, size=(6, n)).astype(float)
    return (score.round(1) if ties else score), positive, weights


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("measure", "oracle"),
    [(area_under_curve, roc_auc_score), (average_precision, average_precision_score)],
)
def test_rank_scores_of_one_fold_agree_with_scikit_learn(measure, oracle, ties):
    score, positive, weights = scores(ties=ties)
    found = measure(score, positive, np.zeros(200, dtype=int), weights)
    expected = [oracle(positive, score, sample_weight=of) for of in weights]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_only_rows_of_the_same_fold_are_compared():
    score, positive, weights = scores(seed=1)
    folds = np.arange(200) % 3
    shifted = score + 100 * folds  # models of different folds have different offsets
    same = area_under_curve(score, positive, folds, weights)
    np.testing.assert_allclose(area_under_curve(shifted, positive, folds, weights), same)
    pairs, right = 0.0, 0.0
    of = weights[0]
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive & (folds == folds[i])):
            pairs += of[i] * of[j]
            right += of[i] * of[j] * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
    assert same[0] == pytest.approx(right / pairs)
    # the share of positives in other folds is not informative about a row: pooled, it would
    constant = np.array([positive[folds != k].mean() for k in range(3)])[folds]
    np.testing.assert_allclose(area_under_curve(constant, positive, folds, weights), 0.5)


def shares(n=150, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    values = rng.dirichlet(np.ones(n_classes), size=n) + 0.5 * np.eye(n_classes)[codes]
    values /= values.sum(axis=1, keepdims=True)
    return codes, values, rng.integers(0, 3, size=(4, n)).astype(float)


@pytest.mark.parametrize(
    ("scoring", "n_classes"),
    [("roc_auc", 2), ("average_precision", 2), ("neg_log_loss", 3), ("neg_brier_score", 3),
     ("roc_auc_ovr", 3), ("f1", 2), ("accuracy", 3), ("f1_macro", 3), ("balanced_accuracy", 2)],
)  # fmt: skip
def test_classification_scores_agree_with_scikit_learn(scoring, n_classes):
    codes, values, weights = shares(n_classes=n_classes)
    labels = np.array([f"c{k}" for k in range(n_classes)])
    truth = Truth.of(labels[codes], "classification")
    found = measures_of(scoring, "classification", labels, np.bincount(codes))
    decides = scoring in ("roc_auc", "average_precision", "neg_log_loss", "neg_brier_score",
                          "roc_auc_ovr")  # fmt: skip
    measure = found.decides if decides else found.reported[-1]
    folds = np.zeros((1, len(codes)), dtype=int)
    losses = measure.losses(Predictions(values[None], folds), truth, weights)
    positive = values[:, 1] if n_classes == 2 else values
    for loss, of in zip(losses, weights, strict=True):
        if scoring == "neg_log_loss":
            expected = log_loss(codes, values, sample_weight=of)
        elif scoring == "neg_brier_score":
            expected = np.average(((values - np.eye(3)[codes]) ** 2).sum(axis=1), weights=of)
        elif scoring == "roc_auc_ovr":
            each = [roc_auc_score(codes == k, values[:, k], sample_weight=of) for k in range(3)]
            expected = np.mean(each)
        else:
            scorer = get_scorer(scoring)
            answer = positive if scoring in ("roc_auc", "average_precision") else values.argmax(1)
            options = {} if scoring not in ("f1",) else {"pos_label": 1}
            kwargs = {k: v for k, v in scorer._kwargs.items() if k != "pos_label"} | options
            expected = scorer._score_func(codes, answer, sample_weight=of, **kwargs)
        assert measure.shown(loss) == pytest.approx(expected, rel=1e-9)


def test_auc_and_average_precision_are_reported_for_a_rare_class():
    labels = np.array(["no", "yes"])
    found = measures_of(None, "classification", labels, [970, 30])
    assert [measure.name for measure in found.reported] == ["roc_auc", "average_precision"]
    assert measures_of(None, "classification", labels, [700, 300]).reported == ()
    decides = measures_of("roc_auc", "classification", labels, [970, 30])
    assert decides.decides.name == "roc_auc"
    assert [measure.name for measure in decides.reported] == ["average_precision"]
    # the average precision is that of the rare class, whichever it is
    codes = np.array([0] * 3 + [1] * 97)
    share = np.linspace(0.1, 0.9, 100)
    values = np.column_stack([1 - share, share])
    folds = np.zeros((1, 100), dtype=int)
    _, precision = measures_of(None, "classification", labels, [3, 97]).reported
    truth = Truth.of(codes, "classification")
    loss = precision.losses(Predictions(values[None], folds), truth, np.ones((1, 100)))
    assert 1 - loss[0] == pytest.approx(average_precision_score(codes == 0, values[:, 0]))


def test_the_standard_error_of_a_chance_auc_agrees_with_permuted_predictions():
    rng = np.random.default_rng(0)
    codes, folds = (np.arange(120) % 10 == 0).astype(int), rng.integers(5, size=120)
    folds[:7] = -1  # in no test fold
    auc = measures_of(None, "classification", np.arange(2), [108, 12]).rare_auc
    found = auc.null_error(folds, Truth.of(codes, "classification"))
    known = folds >= 0
    weights = np.ones((1, known.sum()))
    drawn = [
        area_under_curve(rng.random(known.sum()), codes[known] == 1, folds[known], weights)[0]
        for _ in range(2000)
    ]
    assert found == pytest.approx(np.std(drawn), rel=0.06)
    one_class = Truth.of(np.array([0, 1]), "classification").take(np.zeros(120, dtype=int))
    assert auc.null_error(folds, one_class) == np.inf
    assert measures_of(None, "classification", np.arange(2), [60, 60]).rare_auc is None


def test_the_partial_likelihood_is_summed_over_events_within_folds():
    rng = np.random.default_rng(0)
    n = 60
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = rng.random(n) < 0.6, rng.exponential(size=n).round(1)  # with ties
    risk, folds = rng.normal(size=n), np.arange(n) % 4
    weights = rng.integers(0, 3, size=(5, n)).astype(float)
    measures = measures_of(None, "survival", None, None)
    predictions = Predictions(risk.reshape(1, n, 1), folds[None])
    found = measures.decides.losses(predictions, Truth.of(y, "survival"), weights)
    assert measures.tests is measures.decides
    assert [one.name for one in measures.reported] == ["concordance"]
    for of, loss in zip(weights, found, strict=True):
        total = 0.0
        for i in np.flatnonzero(y["event"]):
            later = (folds == folds[i]) & (y["time"] >= y["time"][i])
            if of[i]:
                total += of[i] * (risk[i] - np.log(of[later] @ np.exp(risk[later])))
        assert loss == pytest.approx(-total / of[y["event"]].sum())


def test_an_invalid_score_is_refused():
    for scoring in ("roc_acu", 3, lambda model, X, y: 0.0):
        with pytest.raises(InvalidParameter, match="Auto needs scoring as"):
            check_scoring(scoring)
    with pytest.raises(InvalidParameter, match="takes sample_weight"):
        check_scoring(make_scorer(max_error))
    check_scoring(make_scorer(f1_score))
    three = np.array(["a", "b", "c"])
    with pytest.raises(InvalidParameter, match="roc_auc_ovr"):
        measures_of("roc_auc", "classification", three, [5, 5, 5])
    for scoring in ("roc_auc", "f1", "neg_log_loss"):
        with pytest.raises(InvalidParameter, match="for regression"):
            measures_of(scoring, "regression", None, None)
    with pytest.raises(InvalidParameter, match="for classification"):
        measures_of("r2", "classification", three[:2], [5, 5])
    with pytest.raises(InvalidParameter, match="concordance"):
        measures_of("r2", "survival", None, None)
