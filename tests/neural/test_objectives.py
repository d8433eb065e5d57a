"""Gradients compared with finite differences, and objectives compared with published sums."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax

from tamis.neural import GateSolver, NetworkClassifier, Redundancy, Sparsity
from tamis.neural._objectives import (
    ACTIVATIONS,
    LOSSES,
    GateFolds,
    GateLoss,
    GateSettings,
    NetworkLoss,
    Stack,
)
from tamis.neural.gates import GATES, SPARSITY
from tamis.neural.redundancy import KINDS, GateUnits, MeanDependence, dependences

N, F, H, C = 30, 7, 4, 3
FOLD = np.array([0, 1, 1])


def problem(
    scope="class", gate="linear", *, sparsity="l0", redundancy="pearson", joint=False,
    mu=None, lam=None, kind=GateLoss, **network,
):  # fmt: skip
    draws = np.random.default_rng(0)
    X, codes = draws.normal(size=(N, F)), np.sort(np.arange(N) % C)
    n_rows = 1 if scope == "global" else C
    phi = dependences(redundancy, X, codes, C)
    used = np.arange(N) % 5 != np.array([[7], [1]])  # all rows; all except a fifth
    settings = GateSettings(
        gate=gate, scope=scope, sparsity=Sparsity(sparsity), redundancy=Redundancy(redundancy),
        solver=GateSolver(), joint=joint, network=NetworkClassifier(H, decay=0.01, **network),
        seed=0, units=GateUnits(np.arange(F)),
    )  # fmt: skip
    phi = [[MeanDependence(phi)] if scope == "global" else phi] * 2
    folds = GateFolds(X, codes, used, Stack.drawn(0, 4, F, H, C), phi)
    mu = draws.uniform(0, 4, (3, n_rows)) if mu is None else mu
    lam = draws.uniform(0, 40, (3, n_rows)) if lam is None else lam
    objective = kind(settings, folds, FOLD, mu, lam, width=0.35)
    points = draws.normal(size=(3, objective.n_gates))
    if joint:
        points = np.hstack([points, Stack.drawn(3, 3, F, H, C).packed()])
    return objective, points


def assert_gradient(objective, points, step=1e-5):
    runs = np.arange(len(points))
    _, gradient = objective(points, runs)
    draws = np.random.default_rng(1)
    for _ in range(3):
        direction = draws.normal(size=points.shape)
        above, below = (objective(points + s * direction, runs)[0] for s in (step, -step))
        slope = np.einsum("rp,rp->r", gradient, direction)
        np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize(
    ("scope", "gate", "sparsity"),
    list(itertools.product(("global", "class", "one-vs-rest"), GATES, SPARSITY)),
)
def test_the_gradient_is_right_for_every_gate_and_penalty(scope, gate, sparsity, joint):
    assert_gradient(*problem(scope, gate, sparsity=sparsity, joint=joint))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [name for name in ACTIVATIONS if name != "relu"])
def test_the_gradient_is_right_for_every_loss_activation_and_redundancy(loss, kind, activation):
    objective, points = problem(loss=loss, redundancy=kind, activation=activation, joint=True)
    assert_gradient(objective, points)


def test_the_gradient_of_relu_is_right_away_from_its_kinks():
    objective, points = problem(activation="relu", joint=True)
    assert_gradient(objective, points, step=1e-9 ** (2 / 3))


def test_the_published_gradient_lacks_a_factor_of_2():
    """The published gradients lack a factor of 2, as finite differences show."""

    class Printed(GateLoss):
        def _redundancy(self, gate, runs):
            values, slopes = super()._redundancy(gate, runs)
            return values, slopes / 2

    with pytest.raises(AssertionError):
        assert_gradient(*problem(kind=Printed))


def network(stack, k, x):
    hidden = np.tanh(x @ stack.inner[k] + stack.inner_bias[k])
    return softmax(hidden @ stack.outer[k] + stack.outer_bias[k])


def test_the_global_objective_equals_the_published_sum():
    """Compute equation (3.4) by loops for the first run, with two networks and all rows."""
    objective, points = problem("global")
    b, folds, mu, lam = points[0], objective.folds, objective.mu[0, 0], objective.lam[0, 0]
    X, codes, stack = folds.X, folds.codes, folds.stack
    losses = [-np.log(network(stack, k, X[i] * b)[codes[i]]) for k in range(2) for i in range(N)]
    expected = np.mean(losses) + mu / F * np.sum(1 - np.exp(-(b**2) / (2 * 0.35**2)))
    for i, j in itertools.permutations(range(F), 2):
        phi = np.mean([abs(np.corrcoef(X[codes == c].T)[i, j]) for c in range(C)])
        expected += lam / (F * (F - 1)) * b[i] ** 2 * b[j] ** 2 * phi
    np.testing.assert_allclose(objective(points, np.arange(3))[0][0], expected, rtol=1e-12)


@pytest.mark.parametrize("run", [0, 1])
def test_the_class_objective_equals_the_published_sum(run):
    """Compute equation (3.6) by loops. The second run holds out the rows of its fold."""
    objective, points = problem("class", "bell", sparsity="bell")
    gate = np.exp(-(points[run].reshape(C, F) ** 2))
    folds = objective.folds
    X, codes, stack, used = folds.X, folds.codes, folds.stack, folds.used[FOLD[run]]
    expected = 0.0
    for c in range(C):
        rows = np.flatnonzero((codes == c) & used)
        for k in (2 * FOLD[run], 2 * FOLD[run] + 1):
            p = [network(stack, k, X[i] * gate[c])[c] for i in rows]
            expected -= np.mean(np.log(p)) / (2 * C)
        expected += objective.mu[run, c] / (C * F) * np.sum(gate[c] * (1 - gate[c]))
        phi = np.abs(np.corrcoef(X[codes == c].T)) - np.eye(F)
        redundant = gate[c] @ phi @ gate[c]
        expected += objective.lam[run, c] / (C * F * (F - 1)) * redundant
    np.testing.assert_allclose(objective(points, np.arange(3))[0][run], expected, rtol=1e-12)


def test_one_vs_rest_equals_the_balanced_binary_cross_entropy():
    objective, points = problem("one-vs-rest", mu=np.zeros((3, C)), lam=np.zeros((3, C)))
    gate, folds = points[0].reshape(C, F), objective.folds
    X, codes = folds.X, folds.codes
    expected = 0.0
    for c in range(C):
        for k in range(2):
            p = np.array([network(folds.stack, k, x * gate[c])[c] for x in X])
            own = codes == c
            both = -np.mean(np.log(p[own])) - np.mean(np.log(1 - p[~own]))
            expected += both / (2 * 2 * C)
    np.testing.assert_allclose(objective(points, np.arange(3))[0][0], expected, rtol=1e-12)


def test_runs_do_not_affect_each_other():
    """A run has the same value alone and among others."""
    objective, points = problem("class", joint=True)
    together = objective(points, np.arange(3))
    for run in range(3):
        alone = objective(points[[run]], np.array([run]))
        for part, whole in zip(alone, together, strict=True):
            np.testing.assert_allclose(part[0], whole[run], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("masked", [False, True])
def test_the_gradient_of_networks_is_right(loss, masked):
    draws = np.random.default_rng(2)
    X, codes = draws.normal(size=(N, F)), np.arange(N) % C
    weights = draws.uniform(size=(3, N))
    masks = (draws.uniform(size=(3, F)) < 0.6).astype(float) if masked else None
    settings = NetworkClassifier(H, loss=loss, decay=0.02)
    objective = NetworkLoss(settings, X, codes, weights, masks)
    stack = Stack.drawn(0, 3, F, H, C)
    if not masked:
        assert_gradient(objective, stack.packed())
        return
    masked_stack = stack._replace(inner=stack.inner * masks[:, :, None])
    _, gradient = objective(masked_stack.packed(), np.arange(3))
    inner = Stack.unpacked(gradient, F, H, C).inner
    assert np.all(inner[masks == 0] == 0)
    for k in range(3):  # like a network without the other inputs
        kept = masks[k] == 1
        small = NetworkLoss(settings, X[:, kept], codes, weights)
        own = stack.pick(np.array([k]))
        own = own._replace(inner=own.inner[:, kept])
        _, expected = small(own.packed(), np.array([k]))
        expected = Stack.unpacked(expected, kept.sum(), H, C).inner
        np.testing.assert_allclose(inner[k, kept], expected[0], rtol=1e-12)


def test_weights_can_be_packed_and_unpacked():
    stack = Stack.drawn(0, 2, F, H, C)
    again = Stack.unpacked(stack.packed(), *stack.shape)
    for part, copy in zip(stack, again, strict=True):
        np.testing.assert_array_equal(part, copy)
