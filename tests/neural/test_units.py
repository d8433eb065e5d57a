"""Columns that share a gate: the objective compared with explicit copies, and selections."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from tamis.contract import Record
from tamis.exceptions import InvalidParameter
from tamis.neural import (
    GateSelector,
    GateSolver,
    NetworkClassifier,
    Redundancy,
    Sparsity,
    UFeSCoR,
    gate_path,
)
from tamis.neural._objectives import GateFolds, GateLoss, GateSettings, Stack
from tamis.neural.redundancy import GateUnits, GroupedDependence, PairMatrix, dependences
from tamis.neural.sammon import SammonObjective
from tamis.testing.problem import make_table as table
from tamis.testing.search_laws import Stop, outcome

UNIT_OF = np.array([0, 1, 2, 2, 1, 3, 2])
GROUPS = {"pair": [1, 4], "three": [2, 3, 6]}
NETWORK = NetworkClassifier(hidden=3, decay=0.01, combine="mean")


def gates(**options):
    usual = {"n_features_to_select": 2, "network": NETWORK, "mu": 0.05, "lam": 0.1}
    return GateSelector(random_state=0, **{**usual, **options})


def sammon(**options):
    return UFeSCoR(n_features_to_select=2, restarts=2, random_state=0, **options)


def phi():
    return dependences("pearson", table()[0])[0].phi


def loss(scope, units=None, between=None, joint=False, mu=0.3):
    X, y = table()
    order = np.argsort(y, kind="stable")
    n_rows = 1 if scope == "global" else 3
    settings = GateSettings(
        gate="sigmoid", scope=scope, sparsity=Sparsity(), redundancy=Redundancy(), joint=joint,
        solver=GateSolver(), network=NETWORK, seed=0, units=units or GateUnits(np.arange(7)),
    )  # fmt: skip
    used, phis = np.ones((1, 60), dtype=bool), [[between or PairMatrix(phi())]]
    folds = GateFolds(X[order], y[order], used, Stack.drawn(0, 1, 7, 3, 3), phis)
    mu, lam = np.full((1, n_rows), mu), np.full((1, n_rows), 0.2)
    return GateLoss(settings, folds, np.zeros(1, dtype=int), mu, lam, width=0.4)


def test_the_dependence_of_units_is_a_mean_over_pairs():
    explicit, between = phi(), np.zeros((4, 4))
    for u in range(4):
        for v in range(4):
            if u != v:
                between[u, v] = explicit[np.ix_(u == UNIT_OF, v == UNIT_OF)].mean()
    found = GroupedDependence(PairMatrix(explicit.copy()), GateUnits(UNIT_OF))
    shares = np.random.default_rng(0).uniform(size=(3, 4))
    assert_allclose(found.times(shares), shares @ between, atol=1e-12)
    assert_allclose(found.mean, between.sum() / 12, atol=1e-12)


@pytest.mark.parametrize("scope", ["global", "class", "one-vs-rest"])
@pytest.mark.parametrize("joint", [False, True])
def test_a_shared_gate_is_one_parameter(scope, joint):
    units = GateUnits(UNIT_OF)
    between = GroupedDependence(PairMatrix(phi()), units)
    shared, own = loss(scope, units, between, joint), loss(scope, joint=joint)
    n_rows = shared.n_rows
    b = np.random.default_rng(1).normal(size=(1, n_rows, 4))
    weights = shared.folds.stack.packed() if joint else np.empty((1, 0))
    point = np.concatenate([b.reshape(1, -1), weights], axis=1)
    value, gradient = shared(point, np.array([0]))
    spread = np.concatenate([units.spread(b).reshape(1, -1), weights], axis=1)
    own(spread, np.array([0]))
    assert_allclose(shared.terms[0], own.terms[0], rtol=1e-12)
    slopes = approx_fprime(point[0], lambda p: shared(p[None], np.array([0]))[0][0], 1e-7)
    assert_allclose(gradient[0], slopes, atol=2e-6)
    assert np.isfinite(value).all()


def test_the_gradient_of_distances_is_right_for_shared_gates():
    X, units = table()[0], GateUnits(UNIT_OF)
    between = GroupedDependence(PairMatrix(phi()), units)
    shared = SammonObjective(X, 2, (3.0, 0.1, 1.0), between, units)
    own = SammonObjective(X, 2, (3.0, 0.1, 1.0), PairMatrix(phi()), GateUnits(np.arange(7)))
    b = np.random.default_rng(1).uniform(0.3, 1.2, 4)
    value, slope = shared(b)
    own(units.spread(b))
    assert_allclose(shared.terms[0], own.terms[0], rtol=1e-12)
    assert_allclose(slope, approx_fprime(b, lambda p: shared(p)[0], 1e-7), atol=1e-5)
    assert np.isfinite(value)


@pytest.mark.parametrize("make", [gates, sammon])
def test_groups_of_one_column_change_nothing(make):
    X, y = table()
    plain = make().fit(X, y)
    single = make(feature_groups=list("abcdefg")).fit(X, y)
    assert outcome(single) == outcome(plain)
    assert_array_equal(single.gates_, plain.gates_)


@pytest.mark.parametrize("make", [gates, sammon])
def test_a_group_shares_its_gate(make):
    X, y = table()
    selector = make(feature_groups=GROUPS).fit(X, y)
    for columns in GROUPS.values():
        assert np.ptp(selector.gates_[columns]) == 0
        assert np.ptp(selector.support_[columns].astype(int)) == 0
    assert selector.unit_support_.sum() == 2
    assert len(selector.order_) == len(selector.scores_) == 4
    assert_allclose(selector.scores_, selector.gates_[[0, 1, 2, 5]])


@pytest.mark.parametrize("make", [gates, sammon])
def test_fixed_features_are_selected(make):
    X, y = table()
    free = make(feature_groups=GROUPS).fit(X, y)
    worst = int(free.order_[-1])
    fixed = ["pair", "three"][worst - 1] if worst in (1, 2) else [0, 0, 0, 5][worst]
    selector = make(feature_groups=GROUPS, fixed_features=fixed).fit(X, y)
    assert selector.unit_support_[worst]
    assert selector.unit_support_.sum() == 2
    assert selector.order_[0] == worst
    assert_allclose(selector.gates_, free.gates_)
    with pytest.raises(InvalidParameter, match="at least 3, the number of fixed_features"):
        make(fixed_features=[0, 1, 2]).fit(X, y)


@pytest.mark.parametrize("make", [gates, sammon])
def test_a_grouped_selector_can_be_resumed(make):
    X, y = table()
    how = {"feature_groups": GROUPS, "fixed_features": [5]}
    whole = make(**how).fit(X, y)
    watched = make(**how).set_callbacks(seen := Stop(np.inf))
    watched.fit(X, y)
    for after in range(1, seen.seen + 1):
        record = make(**how).set_callbacks(Stop(after)).fit(X, y).record_
        stored = Record.from_dict(json.loads(json.dumps(record.to_dict())))
        assert outcome(make(**how).resume(X, y, record=stored)) == outcome(whole)


def test_the_grid_counts_units():
    X, y = table()
    path = gate_path(gates(feature_groups=GROUPS, fixed_features=0), X, y, mu=[1], lam=[0, 1])
    assert path.support.shape == (2, 3, 7)
    assert path.support[:, :, 0].all()
    for columns in GROUPS.values():
        assert (np.ptp(path.support[:, :, columns].astype(int), axis=2) == 0).all()
