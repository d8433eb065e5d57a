"""Rows without a label, and groups of rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis._seeds import stream
from tamis.criteria import (
    DensitySensitivity,
    PosteriorSensitivity,
    RelativeSVC,
    ScoreSensitivity,
    TunedSVC,
    TunedSVR,
)
from tamis.exceptions import InvalidParameter, InvalidTable, UnlabelledRows
from tamis.recipes import prepare
from tamis.response import tuners
from tamis.response.fold_models import labelled_rows
from tamis.search import Ranking, RecursiveElimination, Then

ALL = np.arange(4)


def table(n_classes=2, n_samples=70, seed=0):
    """Return a table in which every fourth row has no label."""
    X, y = make_classification(
        n_samples, 4, n_informative=3, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, class_sep=0.7, random_state=seed,
    )  # fmt: skip
    y[::4] = -1
    return X, y


def network():
    return MLPClassifier(
        (4,), activation="tanh", solver="lbfgs", alpha=0.5, max_iter=500, random_state=0
    )


def trained(model, X, y, output):
    """Return the outputs of a model trained only on labelled rows, with one column per class."""
    X, y = X[y >= 0], y[y >= 0]
    if output == "decision":
        fitted = model.fit(X, y)
        return lambda Z: np.eye(y.max() + 1)[fitted.predict(Z)]
    if hasattr(model, "predict_proba"):
        return model.fit(X, y).predict_proba
    base = model if y.max() == 1 else OneVsRestClassifier(model)
    cv = list(StratifiedKFold(5).split(X, y))
    return CalibratedClassifierCV(base, ensemble=False, cv=cv).fit(X, y).predict_proba


def moved(p, q):
    return np.abs(p - q).sum(axis=1).mean() / 2


def replaced(X, j, value):
    altered = X.copy()
    altered[:, j] = value
    return altered


def fitted(criterion, X, y, **params):
    with pytest.warns(UnlabelledRows, match=f"{(y == -1).sum()} rows of label -1"):
        return criterion.fit(X, y, **params)


class Suspicious(SVC):
    """Classifier that refuses rows without a label."""

    def fit(self, X, y, sample_weight=None):
        assert (y >= 0).all()
        return super().fit(X, y, sample_weight)


class TestUnlabelled:
    @pytest.mark.parametrize("output", ["probability", "decision"])
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize(
        "model", [LogisticRegression(), SVC(gamma=0.2), network()], ids=lambda m: type(m).__name__
    )
    def test_unlabelled_rows_are_not_trained_on_but_compared(self, model, n_classes, output):
        X, y = table(n_classes)
        outputs = trained(model, X, y, output)
        base = outputs(X)
        every = [
            np.mean([moved(base, outputs(replaced(X, j, v))) for v in X[:, j]]) for j in range(4)
        ]
        criterion = fitted(PosteriorSensitivity(model, output=output), X, y)
        assert_array_equal(criterion.classes_, np.arange(n_classes))
        assert_allclose(criterion.loss(ALL), every, atol=1e-9)
        zeroed = fitted(PosteriorSensitivity(model, output=output, by="zero"), X, y)
        expected = [moved(base, outputs(replaced(X, j, 0.0))) for j in range(4)]
        assert_allclose(zeroed.loss(ALL), expected, atol=1e-9)
        order = stream(3, "shuffle", 4, 0).permutation(len(X))
        shuffled = PosteriorSensitivity(model, output=output, by="permutation", random_state=3)
        expected = [moved(base, outputs(replaced(X, j, X[order, j]))) for j in range(4)]
        assert_allclose(fitted(shuffled, X, y).loss(ALL), expected, atol=1e-9)

    @pytest.mark.parametrize("output", ["probability", "decision"])
    @pytest.mark.parametrize("model", [LogisticRegression(), SVC(gamma=0.2)], ids=str)
    def test_removal_compares_unlabelled_rows(self, model, output):
        X, y = table()
        base = trained(model, X, y, output)(X)
        rest = [np.delete(X, j, axis=1) for j in range(4)]
        expected = [moved(base, trained(model, r, y, output)(r)) for r in rest]
        criterion = fitted(PosteriorSensitivity(model, output=output, by="removal"), X, y)
        assert_allclose(criterion.loss(ALL), expected, atol=1e-9)
        shares = np.bincount(y[y >= 0]) / (y >= 0).sum()
        nothing = np.eye(2)[shares.argmax()] if output == "decision" else shares
        alone = moved(trained(model, X[:, [1]], y, output)(X[:, [1]]), np.tile(nothing, (70, 1)))
        assert_allclose(criterion.loss(np.array([1])), [alone], atol=1e-9)

    @pytest.mark.parametrize("output", ["probability", "decision"])
    def test_unlabelled_rows_are_split_among_the_folds(self, output):
        X, y = table()
        labelled, left = np.flatnonzero(y >= 0), np.flatnonzero(y < 0)
        expected = np.zeros(4)
        folds = list(StratifiedKFold(5).split(labelled, y[labelled]))
        for k, (train, test) in enumerate(folds):
            model = LogisticRegression().fit(X[labelled[train]], y[labelled[train]])
            judged = X[np.r_[labelled[test], left[k::5]]]
            outputs = model.predict_proba
            if output == "decision":
                outputs = lambda Z, model=model: np.eye(2)[model.predict(Z)]  # noqa: E731
            for j in range(4):
                moves = [moved(outputs(judged), outputs(replaced(judged, j, v))) for v in X[:, j]]
                expected[j] += np.mean(moves) * len(judged) / len(X)
        criterion = PosteriorSensitivity(LogisticRegression(), output=output, on="held-out")
        assert_allclose(fitted(criterion, X, y).loss(ALL), expected, atol=1e-10)

    def test_unlabelled_copies_of_rows_change_nothing(self):
        """This includes derivatives, held-out sigmoids and many classes."""
        X, y = table(3)
        X, y = X[y >= 0], y[y >= 0]
        twice, mostly = np.tile(X, (2, 1)), np.r_[y, np.full(len(y), -1)]
        for options in ({"by": "derivative"}, {"calibration": 0.3, "random_state": 0}, {}):
            criterion = PosteriorSensitivity(SVC(gamma=0.2), **options)
            alone = criterion.fit(X, y).loss(ALL)
            assert_allclose(fitted(criterion, twice, mostly).loss(ALL), alone, atol=1e-12)

    @pytest.mark.parametrize("name", ["fspp1-rfe", "fspp2-rfe", "fspp3-rfe", "fspp4-rfe",
                                      "fspp2-init", "mlp-fspp-rfe"])  # fmt: skip
    def test_recipes_tune_without_unlabelled_rows(self, name):
        X, y = table(2, 60)
        X, y = X[y >= 0], y[y >= 0]
        twice, mostly = np.tile(X, (2, 1)), np.r_[y, np.full(len(y), -1)]
        search = prepare(name, y, n_features_to_select=2, random_state=0)
        alone = search.fit(X, y)
        with pytest.warns(UnlabelledRows):
            again = prepare(name, mostly, n_features_to_select=2, random_state=0).fit(twice, mostly)
        assert_array_equal(again.order_, alone.order_)
        assert_allclose(again.scores_, alone.scores_, atol=1e-9)

    @pytest.mark.parametrize("on", ["training", "held-out"])
    def test_no_model_is_trained_on_unlabelled_rows(self, on):
        X, y = table(3)
        tuned = GridSearchCV(Suspicious(), {"C": [0.1, 9.0]}, cv=3, error_score="raise")
        criterion = PosteriorSensitivity(tuned, on=on)
        search = RecursiveElimination(criterion, n_features_to_select=1, retune=1)
        with pytest.warns(UnlabelledRows):
            assert search.fit(X, y).n_features_ == 1
        with pytest.raises(AssertionError):
            search.set_params(criterion__unlabelled=None).fit(X, y)

    def test_two_labels_are_always_classes(self):
        X, y = table()
        signs = np.where(y == 1, 1, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            criterion = PosteriorSensitivity(LogisticRegression()).fit(X, signs)
            coded = PosteriorSensitivity(LogisticRegression()).fit(X, (signs + 1) // 2)
        assert_allclose(criterion.loss(ALL), coded.loss(ALL))

    @pytest.mark.parametrize("labels", [["-1", "0", "1"], [-1, 0, 1], [-9, 0, 1]])
    def test_other_labels_are_classes(self, labels):
        X, y = table()
        named = np.array(labels)[y + 1]
        mark = None if labels[0] == -1 else -1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            criterion = PosteriorSensitivity(LogisticRegression(), unlabelled=mark).fit(X, named)
        assert len(criterion.classes_) == 3

    def test_a_different_number_may_mark_unlabelled_rows(self):
        X, y = table()
        criterion = PosteriorSensitivity(LogisticRegression(), unlabelled=99)
        with pytest.warns(UnlabelledRows, match="18 rows of label 99"):
            criterion.fit(X, np.where(y < 0, 99, y))
        expected = fitted(PosteriorSensitivity(LogisticRegression()), X, y)
        assert_allclose(criterion.loss(ALL), expected.loss(ALL))
        with pytest.raises(InvalidParameter, match="unlabelled to be an int or None"):
            PosteriorSensitivity(LogisticRegression(), unlabelled="none").fit(X, y)

    def test_several_targets_have_no_unlabelled_rows(self):
        _, y = table()
        both = np.column_stack([y > 0, y == 0]).astype(int)
        both[0] = -1
        assert_array_equal(labelled_rows("X", both, -1, len(y)), np.arange(len(y)))

    def test_weights_of_labelled_rows_are_used(self):
        X, y = table()
        weight = np.linspace(0.2, 2, len(y))
        model = LogisticRegression().fit(X[y >= 0], y[y >= 0], weight[y >= 0])
        p = model.predict_proba
        expected = np.mean([moved(p(X), p(replaced(X, 2, v))) for v in X[:, 2]])
        criterion = fitted(PosteriorSensitivity(LogisticRegression()), X, y, sample_weight=weight)
        assert_allclose(criterion.loss(ALL)[2], expected, atol=1e-10)


def twins(n_pairs=60, n_features=4, seed=0):
    """Return noise in which every row has a duplicate in the same group."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_pairs, n_features)), 2, axis=0)
    X += 1e-3 * rng.normal(size=X.shape)
    y = np.repeat(np.tile([0, 1], n_pairs // 2), 2)
    order = rng.permutation(2 * n_pairs)
    return X[order], y[order], np.repeat(np.arange(n_pairs), 2)[order]


class Watched(RelativeSVC):
    """Classifier that records the rows of all trainings."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        Watched.seen.append(np.asarray(X)[:, 0].round(9))
        return super().fit(X, y, sample_weight)


def broken(X, groups):
    """Return the number of trainings on a subset of the rows, and of those that split a group."""
    place = {value: g for row, g in zip(X.round(9), groups, strict=True) for value in row}
    parts = [[place[v] for v in seen] for seen in Watched.seen if len(seen) < len(X)]
    return len(parts), sum((np.unique(p, return_counts=True)[1] == 1).any() for p in parts)


class TestGroups:
    X, y, groups = twins()

    def trainings(self, criterion, routed=False, **params):
        """Return the trainings of an elimination.

        Rows are not standardised, so they can be recognised.
        """
        Watched.seen.clear()
        search = RecursiveElimination(criterion, n_features_to_select=2, standardize=False)
        with config_context(enable_metadata_routing=routed):
            search.fit(self.X, self.y, **params)
        return broken(self.X, self.groups)

    @pytest.mark.parametrize("routed", [False, True])
    @pytest.mark.parametrize(
        "criterion",
        [
            PosteriorSensitivity(Watched()),
            PosteriorSensitivity(Watched(), calibration=0.3, random_state=0),
            PosteriorSensitivity(Watched(), on="held-out"),
            PosteriorSensitivity(Watched(), output="decision", on="held-out"),
            ScoreSensitivity(Watched(), on="held-out", n_values=3),
            PosteriorSensitivity(GridSearchCV(Watched(), {"C": [1, 9]}, cv=3)),
            PosteriorSensitivity(GridSearchCV(Watched(), {"C": [1, 9]}), output="decision"),
            PosteriorSensitivity(GridSearchCV(Watched(), {"C": [1, 9]}, cv=GroupKFold(3))),
        ],
        ids=["sigmoid", "fraction", "held-out", "decision", "score", "grid", "grid-default",
             "grid-of-groups"],
    )  # fmt: skip
    def test_no_group_is_on_both_sides(self, criterion, routed):
        n_parts, n_broken = self.trainings(criterion, routed, groups=self.groups)
        assert n_parts > 0
        assert n_broken == 0
        if "GroupKFold" not in str(criterion):  # which needs them
            assert self.trainings(criterion, routed)[1] > 0

    def test_without_groups_duplicate_rows_leak(self):
        """Rows with a duplicate among the training rows are predicted correctly, even in noise."""

        def known(**params):
            criterion = PosteriorSensitivity(SVC(C=100, gamma=20.0), on="held-out")
            parts = criterion.fit(self.X, self.y, **params)._compared.machines(self.X).predicting
            hits = [machine.predict(self.X[rows]) == self.y[rows] for machine, rows in parts]
            return np.concatenate(hits).mean()

        assert known() > 0.7
        assert known(groups=self.groups) < 0.6

    @pytest.mark.parametrize("routed", [False, True])
    @pytest.mark.parametrize("n_features", [4, 32])
    def test_tuned_svms_keep_groups_together(self, n_features, routed, monkeypatch):
        """Tuning uses cross-validation, or thirds of the rows with folds inside."""
        monkeypatch.setattr(tuners, "RelativeSVC", Watched)
        X, y, groups = twins(60, n_features)
        criterion = PosteriorSensitivity(TunedSVC(random_state=0), n_values=4)
        with config_context(enable_metadata_routing=routed):
            for params, leaks in (({"groups": groups}, False), ({}, True)):
                Watched.seen.clear()
                clone(criterion).fit(X, y, **params).loss(np.arange(n_features))
                n_parts, n_broken = broken(X, groups)
                assert n_parts > 10
                assert (n_broken > 0) == leaks

    @pytest.mark.parametrize("routed", [False, True])
    def test_a_regression_keeps_groups_in_one_fold(self, routed):
        z = self.X[:, 0] + 0.1 * self.y
        with config_context(enable_metadata_routing=routed):
            criterion = DensitySensitivity(TunedSVR(), on="held-out").fit(
                self.X, z, groups=self.groups
            )
        for train, rest in criterion._training.parts:
            assert not set(self.groups[train]) & set(self.groups[rest])
        found = TunedSVR().fit(self.X, z, groups=self.groups).best_params_
        assert criterion.estimator_.get_params() == found

    def test_unlabelled_rows_stay_with_their_group(self):
        y = self.y.copy()
        first = np.unique(self.groups, return_index=True)[1]
        y[first[:40]] = -1  # one of each of 40 pairs
        criterion = PosteriorSensitivity(LogisticRegression(), on="held-out")
        criterion = fitted(criterion, self.X, y, groups=self.groups)
        for train, rest in criterion._training.parts:
            assert not set(self.groups[train]) & set(self.groups[rest])
        everything = np.sort(np.concatenate([rest for _, rest in criterion._training.parts]))
        assert_array_equal(everything, np.arange(len(y)))

    def test_a_pipeline_routes_groups(self):
        criterion = PosteriorSensitivity(Watched())
        with config_context(enable_metadata_routing=True):
            for search in (
                RecursiveElimination(criterion, n_features_to_select=2),
                Then(Ranking(criterion, by="removal", n_features_to_select=3), Ranking(criterion)),
            ):
                pipe = make_pipeline(StandardScaler(), search, LogisticRegression())
                pipe.fit(self.X, self.y, groups=self.groups)
                Z = StandardScaler().fit_transform(self.X)
                alone = clone(search).fit(Z, self.y, groups=self.groups).scores_
                assert_allclose(pipe[1].scores_, alone, atol=1e-12)
                assert np.nanmax(np.abs(clone(search).fit(Z, self.y).scores_ - alone)) > 1e-6

    @pytest.mark.parametrize("routed", [False, True])
    def test_groups_are_refused_if_there_are_no_folds(self, routed):
        criterion = PosteriorSensitivity(LogisticRegression())
        refused = pytest.raises((InvalidParameter, TypeError), match="groups")
        with config_context(enable_metadata_routing=routed), refused:
            criterion.fit(self.X, self.y, groups=self.groups)

    def test_too_few_groups_are_refused(self):
        criterion = PosteriorSensitivity(SVC())
        with pytest.raises(
            InvalidParameter, match="at least two groups to make folds of whole groups, not 1"
        ):
            criterion.fit(self.X, self.y, groups=np.zeros(len(self.y))).loss(ALL)
        with pytest.raises(InvalidParameter, match="is in too few groups"):
            criterion.fit(self.X, self.y, groups=self.y).loss(ALL)
        with pytest.raises(InvalidParameter, match="one groups per row"):
            criterion.fit(self.X, self.y, groups=self.groups[:5])

    def test_folds_of_a_regression_keep_groups_together(self):
        criterion = DensitySensitivity(Ridge(), on="held-out")
        criterion.fit(self.X, self.X[:, 0], groups=self.groups)
        assert all(
            not set(self.groups[a]) & set(self.groups[b]) for a, b in criterion._training.parts
        )


def test_a_model_that_cannot_be_trained_on_one_row_is_reported():
    X, y = np.array([[1.0, 2.0], [3.0, np.nan]]), np.array([0.0, 1.0])
    criterion = DensitySensitivity(HistGradientBoostingRegressor(), on="held-out", random_state=0)
    with pytest.raises(InvalidTable, match="cannot be trained on these 1 rows"):
        RecursiveElimination(criterion, n_features_to_select=1).fit(X, y)
