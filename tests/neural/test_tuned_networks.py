"""Networks with tuned hidden units, gains of their weights, and the best prefix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier

from tamis.choice import BestPrefix
from tamis.criteria import MRMR, Correlation, Importances, TunedMLP, Variance
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.recipes import recipe
from tamis.search import Forward, Ranking


def exclusive_or(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_an_exclusive_or_needs_more_than_one_hidden_unit():
    X, y = exclusive_or()
    tuned = TunedMLP(0.01, every=True, random_state=0).fit(X, y)
    assert tuned.best_params_["hidden_layer_sizes"][0] >= 2
    assert tuned.score(X, y) > 0.9
    assert_allclose(tuned.predict_proba(X).sum(axis=1), 1)


def test_one_to_three_hidden_units_per_column_are_tried():
    assert TunedMLP(every=True).units(4) == list(range(1, 13))
    assert TunedMLP().units(100)[-1] == 300
    assert TunedMLP(most=5).units(100) == [1, 2, 3, 4, 5]
    with pytest.raises(InvalidParameter, match="most to be an int of at least 1"):
        TunedMLP(most=0).fit(*exclusive_or())


def test_a_class_with_one_row_is_accepted():
    X, y = exclusive_or(30)
    y[0] = 2
    assert TunedMLP(random_state=0).fit(X, y).best_params_ == {"hidden_layer_sizes": (4,)}


def test_the_recipe_chooses_hidden_units_by_itself():
    X, y = load_iris(return_X_y=True)
    chosen = recipe("mlp-fspp-init", n_hidden="auto", n_features_to_select=2).fit(X, y)
    assert set(chosen.get_support(indices=True)) == {2, 3}


def test_gains_are_sums_over_all_paths_through_a_network():
    X, y = load_iris(return_X_y=True)
    network = MLPClassifier((3, 2), max_iter=5000, alpha=1.0, solver="lbfgs", random_state=0)
    found = Importances(network, importance_getter="gains").fit(X, y).loss(np.arange(4))
    first, second, third = (np.abs(layer) for layer in network.fit(np.asfortranarray(X), y).coefs_)
    ways = [
        sum(
            first[i, j] * second[j, k] * third[k, o]
            for j in range(3)
            for k in range(2)
            for o in range(3)
        )
        for i in range(4)
    ]
    assert_allclose(found, ways)
    with pytest.raises(IncompatibleCriterion, match="needs a network with coefs_"):
        Importances(Ridge(), importance_getter="gains").fit(X, y).loss(np.arange(4))


def test_recipes_on_network_weights_estimate_their_memory():
    (small, large), (_, more) = (
        [recipe("annigma", n_hidden=n).criterion.cost(200, d) for d in (10, 40)] for n in (6, 12)
    )
    assert 1e4 < small < large < more
    assert Importances(Ridge()).cost(200, 10) is not None
    assert Importances(LogisticRegression()).cost(200, 10) is None


def test_the_best_prefix_has_the_greatest_cross_validated_score():
    for (X, y), model in (
        (load_iris(return_X_y=True), RidgeClassifier()),
        (load_diabetes(return_X_y=True), Ridge()),
    ):
        search = Forward(MRMR(), n_features_to_select=BestPrefix()).fit(X, y)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        # the order is known up to the selected size; all columns are not a selection
        walk = Forward(MRMR(), n_features_to_select=X.shape[1]).fit(X, y)
        order = [int(step.moved[0]) for step in walk.trace_]
        scores = [
            cross_val_score(model, Z[:, order[:size]], y, cv=5).mean()
            for size in range(1, X.shape[1])
        ]
        kept = search.n_features_
        assert set(search.get_support(indices=True)) == set(order[:kept])
        assert scores[kept - 1] > max(scores) - 0.02  # separate shuffled folds
        assert "optimistic" in search.choice_.reason


def test_the_best_prefix_refuses_invalid_parameters():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InvalidParameter, match="cv to be an int of at least 2"):
        Ranking(Correlation(), n_features_to_select=BestPrefix(cv=1)).fit(X, y)
    with pytest.raises(IncompatibleCriterion, match="Variance has none"):
        Ranking(Variance(), n_features_to_select=BestPrefix()).fit(X)
