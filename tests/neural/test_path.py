"""The path: held-out rows, warm starts and decreasing sizes."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

from tamis._arrays import standardised
from tamis.choice import Threshold
from tamis.contract.units import Grouping
from tamis.criteria import FisherScore
from tamis.exceptions import InvalidParameter
from tamis.neural import GateSelector, NetworkClassifier, gate_path
from tamis.neural import gate_runs as module
from tamis.neural.gate_runs import GateGrid, learn_gates, rising
from tamis.neural.network import deal
from tamis.search import Ranking

X, y = load_wine(return_X_y=True)
SMALL = NetworkClassifier(3, decay=0.01, combine="mean")


def test_shapes_and_order():
    selector = GateSelector(n_features_to_select=3, network=SMALL, random_state=0)
    path = gate_path(selector, X, y, mu=[4, 1], lam=[10, 0, 1], folds=4)
    assert len(path) == 6
    np.testing.assert_array_equal(path.mu, [1, 1, 1, 4, 4, 4])
    np.testing.assert_array_equal(path.lam, [0, 1, 10] * 2)
    assert path.support.shape == (6, 4, 13)
    np.testing.assert_array_equal(path.size, 3)
    assert path.accuracy.min() > 0.8
    assert path.accuracy[path.best] == path.accuracy.max()
    assert len(repr(path).splitlines()) == 7


def test_a_larger_redundancy_weight_leaves_fewer_gates_open():
    selector = GateSelector(
        n_features_to_select=Threshold(0.5), gate="bell", sparsity="bell", mu=1, network=SMALL
    )
    path = gate_path(selector.set_params(random_state=0), X, y, lam=[0, 3, 30, 300])
    assert path.size[0] == 13
    assert np.all(np.diff(path.size) <= 0)
    assert 0 < path.size[-1] < 4


def test_the_most_frequent_class_is_predicted_if_no_gate_is_open():
    selector = GateSelector(n_features_to_select=Threshold(1.5), gate="bell", sparsity="bell")
    path = gate_path(selector.set_params(network=SMALL, random_state=0), X, y, mu=[1], lam=[1])
    assert path.size[0] == 0
    assert path.accuracy[0] == pytest.approx(np.bincount(y).max() / len(y), abs=0.02)


def test_the_accuracy_on_noise_is_at_chance():
    """Neither networks nor gates have used the rows that score them."""
    draws = np.random.default_rng(0)
    noise, coins = draws.normal(size=(200, 60)), draws.integers(2, size=200)
    selector = GateSelector(
        n_features_to_select=5,
        scope="class",
        network=clone(SMALL).set_params(hidden=5),
        random_state=0,
    )
    path = gate_path(selector, noise, coins, mu=[0], lam=[0, 50])
    assert np.all(np.abs(path.accuracy - 0.5) < 0.11)


def test_labels_of_held_out_rows_do_not_affect_the_selection():
    """Networks, gates and redundancy of a fold do not use them."""
    selector = GateSelector(
        n_features_to_select=3,
        scope="class",
        network=clone(SMALL).set_params(hidden=4),
        random_state=3,
    )
    selector._units = Grouping(13)
    order = np.argsort(y, kind="stable")
    Z, codes = standardised(X)[order], y[order]
    fold = deal(codes, 3, 3)

    def support(Z):
        grid = np.array([0.2]), np.array([0.0, 2.0])
        return (
            GateGrid(selector._settings(3, 3), selector._chosen, Z, codes, *grid, 3).path().support
        )

    before = support(Z)
    for k in range(3):
        out, Z_other = fold == k, Z.copy()
        Z_other[out] = np.random.default_rng(0).permutation(Z[out])  # rows change their labels
        after = support(Z_other)
        np.testing.assert_array_equal(after[:, k], before[:, k])
        assert not np.array_equal(after, before)


def test_each_step_starts_from_the_previous_result(monkeypatch):
    calls = []

    def spy(*args, start=None, **more):
        calls.append((start, learn_gates(*args, start=start, **more)))
        return calls[-1][1]

    monkeypatch.setattr(module, "learn_gates", spy)
    selector = GateSelector(n_features_to_select=3, network=SMALL, random_state=0)
    gate_path(selector, X, y, mu=[1], lam=[0, 1, 2])
    starts, ends = zip(*calls, strict=True)
    assert starts[0] is None
    for start, end in zip(starts[1:], ends, strict=False):
        np.testing.assert_array_equal(start, end.points)


def test_constant_columns_are_never_selected():
    constant = np.column_stack([np.ones((len(X), 6)), X])
    selector = GateSelector(n_features_to_select=2, gate="bell", sparsity="bell", network=SMALL)
    path = gate_path(selector.set_params(random_state=0), constant, y, mu=[1], lam=[0, 5, 20])
    assert not path.support[..., :6].any()


def test_the_accuracy_never_exceeds_1():
    """The shares of 18 rows would add up to a little more than 1."""
    codes = np.arange(54) % 2
    shifted = codes[:, None] + 0.01 * np.random.default_rng(0).normal(size=(54, 3))
    selector = GateSelector(
        n_features_to_select=2, network=clone(SMALL).set_params(hidden=2), random_state=0
    )
    path = gate_path(selector, shifted, codes, mu=[1], lam=[1])
    assert (path.accuracy[0], path.error[0]) == (1, 0)


def test_the_result_is_determined_by_the_seed():
    selector = GateSelector(n_features_to_select=3, network=SMALL, random_state=1)
    one, two = (gate_path(selector, X, y, mu=[1], lam=[1]) for _ in range(2))
    np.testing.assert_array_equal(one.support, two.support)
    assert not hasattr(selector, "support_")


def test_the_default_grid_is_centred_where_gates_close():
    levels = rising(np.array([1.0, 4.0]), None, 0.25)
    assert levels[0].tolist() == [0, 0]
    assert [2.0, 8.0] in levels.tolist()
    np.testing.assert_array_equal(rising(np.array([1.0, 2.0]), np.array([3.0]), 0.1), [[3.0, 3.0]])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lam": [-1]}, "lam to be a number of at least 0"),
        ({"mu": [np.nan]}, "mu to be a number"),
        ({"lam": []}, "lam to be a number"),
        ({"folds": 1}, "folds to be an int from 2 to 178"),
        ({"mu": "x"}, "mu to be a number"),
        ({"lam": ["a"]}, "lam to be a number"),
    ],
)
def test_invalid_grids_are_refused(wrong, said):
    with pytest.raises(InvalidParameter, match=said):
        gate_path(GateSelector(random_state=0), X, y, **wrong)


def test_selectors_without_a_path_are_refused():
    with pytest.raises(InvalidParameter, match="needs selector to be a GateSelector"):
        gate_path(Ranking(FisherScore()), X, y)
    with pytest.raises(InvalidParameter, match="one mu for all classes"):
        gate_path(GateSelector(scope="class", mu=[1, 2, 3], lam=1), X, y)
    with pytest.raises(InvalidParameter, match="between 1 and 13"):
        gate_path(GateSelector(n_features_to_select=14), X, y)
