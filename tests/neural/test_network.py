"""The classifier, compared with scikit-learn's, on few rows and with invalid input."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from tamis.exceptions import InvalidParameter, InvalidTarget, NotConverged, TamisWarning
from tamis.neural import GateSelector, NetworkClassifier
from tamis.neural.network import deal, held_out_rows, train

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("solver", ["lbfgs", pytest.param("adam", marks=pytest.mark.slow)])
def test_it_is_a_scikit_learn_classifier(solver):
    check_estimator(NetworkClassifier(4, solver=solver, max_iter=60, random_state=0), on_skip=None)


@pytest.mark.parametrize(("load", "decay"), [(load_iris, 0.01), (load_breast_cancer, 0.01)])
def test_the_objective_is_as_low_as_with_scikit_learn(load, decay):
    """The objective is the same. Their alpha is divided by the number of rows."""
    X, y = load(return_X_y=True)
    ours = NetworkClassifier(5, decay=decay, validation=None, restarts=5, max_iter=500)
    ours.set_params(random_state=0).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    theirs = [
        MLPClassifier(
            (5,),
            activation="tanh",
            solver="lbfgs",
            alpha=decay * len(X),
            max_iter=500,
            random_state=seed,
        ).fit(Z, y)
        for seed in range(5)
    ]
    best = min(log_loss(y, net.predict_proba(Z)) for net in theirs)
    assert log_loss(y, ours.predict_proba(X)) <= best * 1.02 + 1e-3


@pytest.mark.parametrize("solver", ["lbfgs", "adam"])
@pytest.mark.parametrize("combine", ["best", "mean"])
def test_the_cross_validated_accuracy_is_high(solver, combine):
    net = NetworkClassifier(3, solver=solver, combine=combine, random_state=0)
    assert cross_val_score(net, X, y, cv=5).mean() >= 0.945


def test_mini_batches_learn():
    net = NetworkClassifier(3, solver="adam", batch_size=16, max_iter=40, random_state=0)
    assert net.fit(X, y).score(X, y) > 0.93


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("loss", ["log", "squared"])
def test_every_activation_and_loss_fits(activation, loss):
    net = NetworkClassifier(6, activation=activation, loss=loss, random_state=0)
    assert net.fit(X, y).score(X, y) > 0.93


def test_scale_and_offset_of_columns_do_not_matter():
    net = NetworkClassifier(3, random_state=0)
    other = X * [1024, 1 / 64, 8, 1] + [0, 1, -2, 16]
    plain, moved = (net.fit(table, y).predict(table) for table in (X, other))
    assert np.mean(plain == moved) > 0.98


def test_a_constant_column_is_ignored():
    """This holds even if new rows have a different value."""
    held = np.column_stack([X, np.full(len(X), 5.0)])
    other = np.column_stack([X, np.full(len(X), 500.0)])
    net = NetworkClassifier(3, random_state=0).fit(held, y)
    np.testing.assert_array_equal(net.predict_proba(held), net.predict_proba(other))


def test_the_best_network_has_the_greatest_validation_accuracy():
    net = NetworkClassifier(3, random_state=0, restarts=2).fit(X, y)
    history = net.history_["validation_accuracy"]
    assert history.shape[1] == net.n_networks_ == 10
    assert net.validation_score_ == np.nanmax(history)


def test_early_stopping_finds_a_better_network_than_the_last_one():
    """With noisy labels, the final validation loss is well above its minimum."""
    X, y = make_classification(80, 30, flip_y=0.4, random_state=0)
    net = NetworkClassifier(20, decay=0.0, random_state=0).fit(X, y)
    accuracy = net.history_["validation_accuracy"]
    ended = np.array([column[np.isfinite(column)][-1] for column in accuracy.T])
    assert np.nanmax(accuracy, axis=0).mean() > ended.mean() + 0.05


def test_the_weights_of_the_best_epoch_are_kept():
    """The accuracy on held-out rows is the greatest of all epochs."""
    X, y = make_classification(80, 30, flip_y=0.4, random_state=0)
    Z = StandardScaler().fit_transform(X)
    settings = NetworkClassifier(20, decay=0.0, random_state=0)
    held_out = held_out_rows(y, 5, 1, 0)
    trained = train(settings, Z, y, held_out)
    right = trained.stack.probabilities(Z, "tanh")[0].argmax(axis=2) == y
    own = [np.mean(right[k, out]) for k, out in enumerate(held_out)]
    greatest = np.nanmax(trained.history["validation_accuracy"], axis=0)
    np.testing.assert_allclose(own, greatest)
    last = train(settings, Z, y, held_out, early_stopping=False)
    assert last.accuracy.mean() < trained.accuracy.mean()


def test_diverging_training_causes_a_warning():
    labels = (np.arange(len(X)) % 10 == 0).astype(int)
    net = NetworkClassifier(3, solver="adam", learning_rate=1e308, max_iter=30, random_state=0)
    with pytest.warns(NotConverged, match="smaller learning_rate"):
        net.fit(X, labels)
    assert np.isfinite(net.predict_proba(X)).all()


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_columns_of_any_scale(size):
    net = NetworkClassifier(3, random_state=0)
    assert net.fit(X * [1, 1, size, size], y).score(X * [1, 1, size, size], y) > 0.95


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_rows_with_huge_values_have_finite_probabilities(activation):
    X, y = load_iris(return_X_y=True)
    constant = np.column_stack([X * 1e-300, np.full(len(X), 1e-300)])
    network = NetworkClassifier(3, activation=activation, random_state=0).fit(constant, y)
    wild = np.vstack([constant[:3] * 1e10, np.full((1, 5), 1e300), np.full((1, 5), -1.7e308)])
    p = network.predict_proba(wild)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_training_networks_in_groups_changes_nothing(monkeypatch):
    """The available memory affects how many networks are trained together, not the result."""
    X, y = load_iris(return_X_y=True)
    whole = NetworkClassifier(3, restarts=2, random_state=0).fit(X, y)
    for numbers in (1, 3000, 5000):
        monkeypatch.setattr("tamis.neural.network.MOST_NUMBERS", numbers)
        parts = NetworkClassifier(3, restarts=2, random_state=0).fit(X, y)
        np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-6)
        assert parts.n_iter_ == whole.n_iter_
        for name, history in whole.history_.items():
            np.testing.assert_allclose(parts.history_[name], history, rtol=1e-6)


def test_without_held_out_rows_there_is_no_validation_score():
    net = NetworkClassifier(3, validation=None, restarts=3, random_state=0).fit(X, y)
    assert np.isnan(net.validation_score_)
    assert net.n_networks_ == 3


def test_the_result_is_determined_by_the_seed():
    nets = [NetworkClassifier(3, random_state=seed).fit(X, y) for seed in (0, 0, 1)]
    p, again, other = (net.predict_proba(X) for net in nets)
    np.testing.assert_array_equal(p, again)
    assert not np.allclose(p, other)


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_rows_are_divided_evenly_among_the_folds(n_folds):
    codes = np.repeat([0, 1, 2], [50, 23, 1])
    folds = deal(codes, n_folds, seed=0)
    sizes = np.bincount(folds, minlength=n_folds)
    assert np.ptp(sizes) <= 1
    for c in (0, 1):
        assert np.ptp(np.bincount(folds[codes == c], minlength=n_folds)) <= 1


def test_each_network_has_its_own_held_out_rows():
    codes = np.arange(40) % 2
    assert not held_out_rows(codes, None, 3, 0).any()
    folds = held_out_rows(codes, 4, 2, 0)
    assert folds.shape == (8, 40)
    np.testing.assert_array_equal(folds[::2].sum(axis=0), 1)
    part = held_out_rows(codes, 0.25, 2, 0)
    assert part.shape == (2, 40)
    assert part.sum() == 20
    for share in (0.1, 0.3, 0.45, 0.9):
        out = held_out_rows(codes, share, 1, 0)[0]
        assert out.sum() == round(share * 40)
        assert abs(out[codes == 0].sum() - out[codes == 1].sum()) <= 1


def test_classes_may_have_one_or_two_rows():
    few = np.r_[np.arange(0, 20), [50, 100, 101]]
    net = NetworkClassifier(3, random_state=0).fit(X[few], y[few])
    assert np.isfinite(net.predict_proba(X)).all()


def test_a_network_fits_more_columns_than_rows():
    X, y = make_classification(30, 200, n_informative=5, random_state=0)
    net = NetworkClassifier(5, validation=None, random_state=0).fit(X, y)
    assert net.score(X, y) == 1


def test_it_works_in_a_pipeline_with_text_labels():
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    net = make_pipeline(StandardScaler(), NetworkClassifier(3, random_state=0)).fit(X, labels)
    assert set(net.predict(X)) == set(labels)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hidden": 0}, "hidden to be an int of at least 1 or 'auto', got 0"),
        ({"activation": "softplus"}, "activation to be 'tanh', 'sigmoid' or 'relu'"),
        ({"loss": "hinge"}, "loss to be 'log'"),
        ({"solver": "sgd"}, "solver to be 'lbfgs' or 'adam', got 'sgd'"),
        ({"decay": -1}, "decay to be a number of at least 0 or 'auto', got -1"),
        ({"validation": 1}, r"an int of at least 2, a number in \(0, 1\) or None, got 1"),
        ({"validation": 1.5}, "an int of at least 2"),
        ({"learning_rate": 0}, "learning_rate to be a number above 0"),
        ({"batch_size": 0}, "batch_size to be an int"),
        ({"combine": "vote"}, "combine to be 'best' or 'mean'"),
        ({"restarts": 1.5}, "restarts to be an int"),
    ],
)
def test_invalid_parameters_are_refused(wrong, said):
    with pytest.raises(InvalidParameter, match=said):
        NetworkClassifier(**wrong).fit(X, y)


def test_a_single_class_is_refused():
    with pytest.raises(InvalidTarget, match="at least two classes"):
        NetworkClassifier().fit(X, np.zeros(len(X), dtype=int))


def test_the_number_of_hidden_units_is_chosen_by_five_folds():
    some, target = X[::2, :2], y[::2]
    quick = {"max_iter": 30, "random_state": 4}
    tried = [1, 2, 3, 4, 5, 6]
    accuracy = []
    for hidden in tried:
        network = NetworkClassifier(hidden, **quick).fit(some, target)
        watched = network.history_["validation_accuracy"]
        accuracy.append(np.nanmax(watched, axis=0).mean())
    found = NetworkClassifier("auto", **quick).fit(some, target)
    assert found.hidden_ == tried[int(np.argmax(np.round(accuracy, 12)))]
    same = NetworkClassifier(found.hidden_, **quick).fit(some, target)
    assert_array_equal(found.predict_proba(some), same.predict_proba(some))
    state = json.loads(json.dumps(found.state()))
    again = NetworkClassifier("auto", **quick).restore(state, found.classes_)
    assert_array_equal(again.predict_proba(some), found.predict_proba(some))


def test_an_exclusive_or_gets_more_than_one_hidden_unit():
    rng = np.random.default_rng(0)
    some = rng.normal(size=(80, 2))
    target = some[:, 0] * some[:, 1] > 0
    network = NetworkClassifier("auto", validation=None, max_iter=60, random_state=0)
    assert network.fit(some, target).hidden_ >= 2
    assert network.cost(80, 2) > network.set_params(hidden=2).cost(80, 2)
    with pytest.raises(InvalidParameter, match="int of at least 1 or 'auto', got 'a'"):
        NetworkClassifier("a").fit(some, target)
    with pytest.raises(InvalidParameter, match=r"GateSelector needs .* hidden='auto'"):
        GateSelector(network=NetworkClassifier("auto")).fit(some, target)


def test_a_network_with_more_weights_than_rows_and_nothing_against_overfitting_is_reported():
    X, y = load_iris(return_X_y=True)
    plain = {"decay": 0, "validation": None, "random_state": 0, "max_iter": 5}
    few = slice(None, None, 2)  # 75 rows
    with pytest.warns(TamisWarning, match="has 83 weights for 75 rows"):
        NetworkClassifier(10, **plain).fit(X[few], y[few])
    NetworkClassifier(5, **plain).fit(X[few], y[few])  # 43 weights
    NetworkClassifier(10, **plain | {"decay": 0.01}).fit(X[few], y[few])
    NetworkClassifier(10, **plain | {"validation": 5}).fit(X[few], y[few])
