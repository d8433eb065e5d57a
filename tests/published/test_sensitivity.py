"""Hits of thirty on problems with known answers, and real MADELON: recipes as they come."""

import os

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tamis.datasets import (
    load,
    make_additive,
    make_corral,
    make_exponential,
    make_interactive,
    make_weston,
)
from tamis.recipes import prepare

pytestmark = pytest.mark.slow


def is_hit(order, problem):
    """Whether the first columns hold one of each group that matters."""
    first = set(order[: len(problem.relevant)].tolist())
    return all(first & set(group) for group in problem.equivalent)


def hits(name, make, n_samples, **options):
    """Of thirty realizations."""
    found = 0
    for realization in range(30):
        problem = make(n_samples=n_samples, random_state=1000 + realization, **options)
        size = len(problem.relevant)
        search = prepare(name, problem.y, n_features=size, random_state=realization)
        found += is_hit(search.fit(problem.X, problem.y).order_, problem)
    return found


@pytest.mark.parametrize("name", ["sd-l-rfe", "sd-g-rfe"])
@pytest.mark.parametrize(
    ("make", "n_samples", "bar", "options"),
    [
        (make_additive, 200, 28, {}),
        (make_additive, 100, 20, {}),
        (make_additive, 70, 17, {}),
        (make_additive, 50, 12, {}),
        (make_interactive, 200, 28, {"square": True}),
        (make_interactive, 100, 28, {"square": True}),
        (make_interactive, 70, 28, {"square": True}),
        (make_exponential, 100, 28, {}),
        (make_exponential, 70, 28, {}),
        (make_exponential, 50, 28, {}),
        (make_exponential, 40, 28, {}),
    ],
)
def test_regression(name, make, n_samples, bar, options):
    """Yang and Ong (2011), table 1."""
    assert hits(name, make, n_samples, **options) >= bar


@pytest.mark.parametrize("name", ["fspp1-rfe", "fspp2-rfe"])
def test_weston_by_a_kernel_machine(name):
    """Shen et al. (2008), figure 2: both columns, and the error with them."""
    found, errors = 0, []
    for realization in range(30):
        problem = make_weston(n_samples=2100, random_state=realization)
        X, y = problem.X, problem.y
        search = prepare(name, y[:100], n_features=2, random_state=realization)
        chosen = search.fit(X[:100], y[:100]).order_[:2]
        found += is_hit(chosen, problem)
        Z = StandardScaler().fit(X[:100]).transform(X)[:, chosen]
        machine = SVC(C=32, gamma=1 / 32).fit(Z[:100], y[:100])
        errors.append(1 - machine.score(Z[100:], y[100:]))
    assert found >= 29
    assert np.mean(errors) <= 0.06


@pytest.mark.parametrize(("n_samples", "bar"), [(200, 28), (90, 28), (70, 28), (40, 26)])
def test_weston_by_a_network(n_samples, bar):
    """Yang, Shen, Ong and Li (2009), table 1."""
    assert hits("mlp-fspp-rfe", make_weston, n_samples) >= bar


@pytest.mark.parametrize(("variant", "bar"), [(6, 29), (46, 26), (47, 26)])
def test_corral_by_a_network(variant, bar):
    assert hits("mlp-fspp-rfe", make_corral, 128, variant=variant) >= bar


@pytest.mark.skipif("TAMIS_DATA" not in os.environ, reason="MADELON is read from TAMIS_DATA")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_madelon(seed):
    """Twelve columns, all of them relevant; none of the published probes."""
    with np.load(os.path.join(os.environ["TAMIS_DATA"], "madelon.npz")) as file:
        relevant, train, valid = (file[n] for n in ("relevant_idx", "train_idx", "valid_idx"))
    X, y, *_ = load("madelon")
    search = prepare("fspp2-rfe", y[train], n_features=12, random_state=seed)
    first = search.fit(X[train], y[train]).order_[:12]
    assert set(first) <= set(relevant)
    Z = StandardScaler().fit(X[train]).transform(X)[:, first]
    grid = {"C": [0.5, 2, 8, 32], "gamma": [0.01, 0.03, 0.1, 0.2, 0.4, 0.8]}
    machine = GridSearchCV(SVC(), grid, cv=5).fit(Z[train], y[train])
    assert 1 - balanced_accuracy_score(y[valid], machine.predict(Z[valid])) <= 0.10
