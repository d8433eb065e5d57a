"""Scatter and divergence compared with explicit matrices, quadrature and sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats
from sklearn.datasets import load_breast_cancer, load_wine

from tamis._arrays import EMPTY
from tamis.criteria import Divergence, Scatter
from tamis.exceptions import InvalidParameter, SingularScatter
from tamis.search import Backward, BranchAndBound, Forward, RecursiveElimination
from tamis.testing.problem import make_table as table


def explicit(X, y, ridge=0.0):
    """Return S_w and S_m from their definitions."""
    n, d = X.shape
    within, total = np.zeros((d, d)), np.zeros((d, d))
    for k in np.unique(y):
        group = X[y == k]
        prior = len(group) / n
        within += prior * np.cov(group.T, bias=True)
        shift = group.mean(0) - X.mean(0)
        total += prior * np.outer(shift, shift)
    within += ridge * np.trace(within) / d * np.eye(d)
    return within, total + within


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, lambda return_X_y: table()])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_measures_agree_with_their_definitions(load, ridge):
    X, y = load(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    within, total = explicit(X, y, ridge)
    for subset in (np.array([2]), np.array([0, 3, 5]), np.arange(6)):
        w, m = within[np.ix_(subset, subset)], total[np.ix_(subset, subset)]
        expected = {
            "J1": np.trace(m) / np.trace(w),
            "J2": np.linalg.det(m) / np.linalg.det(w),
            "J3": np.trace(np.linalg.inv(w) @ m),
        }
        for measure, value in expected.items():
            criterion = Scatter(measure, ridge=ridge).fit(X, y)
            assert_allclose(criterion.value(subset), value, rtol=1e-9)


def test_the_empty_subset_has_the_documented_values():
    X, y = table()
    assert [Scatter(j).fit(X, y).value(EMPTY) for j in ("J1", "J2", "J3")] == [1, 1, 0]
    assert Divergence().fit(X, y).value(EMPTY) == 0


@pytest.mark.parametrize("measure", ["J2", "J3"])
def test_updates_do_not_drift(measure):
    """Hundreds of additions and removals give the scores of a new criterion."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    walked, draw = Scatter(measure).fit(X, y), np.random.default_rng(0)
    mask = draw.random(30) < 0.3
    for _ in range(300):
        mask[draw.integers(30, size=draw.integers(1, 4))] ^= True
        subset, others = np.flatnonzero(mask), np.flatnonzero(~mask)
        if not len(subset) or not len(others):
            continue
        gains, losses = walked.gain(subset, others), walked.loss(subset)
    fresh = Scatter(measure).fit(X, y)
    for walked_to, expected in ((gains, fresh.gain(subset, others)), (losses, fresh.loss(subset))):
        assert_allclose(walked_to, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_divergence_in_one_dimension_agrees_with_quadrature():
    X, y = table(n_classes=2)
    column = X[:, 2]
    groups = [stats.norm(column[y == k].mean(), column[y == k].std()) for k in (0, 1)]
    priors = [np.mean(y == k) for k in (0, 1)]

    def kl(p, q):
        return integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -12, 12)[0]

    expected = 2 * priors[0] * priors[1] * (kl(*groups) + kl(*groups[::-1]))
    assert_allclose(Divergence().fit(X, y).value(np.array([2])), expected, rtol=1e-7)


def test_divergence_agrees_with_its_closed_form():
    X, y = table(n_classes=3)
    subset = np.array([0, 2, 5])
    criterion = Divergence().fit(X, y)
    expected = 0.0
    for k in range(3):
        for other in range(3):
            a, b = X[y == k][:, subset], X[y == other][:, subset]
            sa, sb = np.cov(a.T, bias=True), np.cov(b.T, bias=True)
            shift = a.mean(0) - b.mean(0)
            ia, ib = np.linalg.inv(sa), np.linalg.inv(sb)
            d = 0.5 * np.trace(ia @ sb + ib @ sa - 2 * np.eye(3)) + 0.5 * shift @ (ia + ib) @ shift
            expected += np.mean(y == k) * np.mean(y == other) * d
    assert_allclose(criterion.value(subset), expected, rtol=1e-10)


def test_divergence_detects_a_difference_in_spread():
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(400, 3)), np.repeat([0, 1], 200)
    X[y == 1, 1] *= 4
    assert Forward(Divergence(), n_features_to_select=1).fit(X, y).support_[1]
    assert Scatter().fit(X, y).gain(EMPTY, np.arange(3)).max() < 1.1


def test_scaling_does_not_matter_to_j2_j3_and_divergence():
    X, y = table()
    subset = np.array([0, 1, 4])
    for criterion in (Scatter("J2"), Scatter("J3"), Divergence()):
        plain = criterion.fit(X, y).value(subset)
        assert_allclose(criterion.fit(X * np.arange(1, 8) + 3, y).value(subset), plain)


class TestSingular:
    X, y = table()
    copied = np.column_stack([X, X[:, 0]])

    @pytest.mark.parametrize("criterion", [Scatter("J2"), Scatter("J3"), Divergence()])
    def test_a_subset_with_duplicates_has_no_value(self, criterion):
        fitted = criterion.fit(self.copied, self.y)
        assert fitted.value(np.array([0, 7])) == -np.inf
        assert fitted.gain(np.array([0]), np.array([1, 7]))[1] == -np.inf
        with pytest.raises(SingularScatter, match="ridge=1e-6"):
            fitted.loss(np.array([0, 1, 7]))
        with pytest.raises(SingularScatter, match="ridge=1e-6"):
            fitted.bound(np.array([0, 1, 7]), 2)

    @pytest.mark.parametrize("search", [Backward, RecursiveElimination, BranchAndBound])
    def test_a_search_from_the_full_set_is_refused_with_a_remedy(self, search):
        with pytest.raises(SingularScatter, match="use Forward"):
            search(Scatter(), n_features_to_select=3).fit(self.copied, self.y)
        assert (
            search(Scatter(ridge=1e-6), n_features_to_select=3)
            .fit(self.copied, self.y)
            .support_[:7]
            .sum()
            == 3
        )

    def test_more_columns_than_samples_need_a_ridge(self):
        draw = np.random.default_rng(0)
        X, y = draw.normal(size=(12, 30)), np.arange(12) % 2
        assert Forward(Scatter(), n_features_to_select=8).fit(X, y).n_features_ == 8
        with pytest.raises(SingularScatter, match="fewer features"):
            Forward(Scatter(), n_features_to_select=20).fit(X, y)
        assert Forward(Scatter(ridge=1e-3), n_features_to_select=20).fit(X, y).n_features_ == 20

    def test_a_column_that_determines_the_class_is_refused(self):
        X = np.column_stack([self.X, self.y])
        with pytest.raises(SingularScatter, match="Column 7 does not vary within a class"):
            Scatter().fit(X, self.y)
        assert Forward(Scatter(ridge=1e-6), n_features_to_select=1).fit(X, self.y).support_[7]


def test_invalid_parameters_are_refused():
    X, y = table()
    with pytest.raises(InvalidParameter, match="'J1', 'J2' or 'J3'"):
        Scatter("J4").fit(X, y)
    with pytest.raises(InvalidParameter, match="ridge to be a number of at least 0"):
        Scatter(ridge=-1).fit(X, y)
    with pytest.raises(InvalidParameter, match="ridge to be a number of at least 0"):
        Divergence(ridge=np.nan).fit(X, y)


def test_losses_are_accurate_next_to_a_huge_column():
    X, y = table()
    X[0, 2] = 1e9
    criterion = Scatter("J1").fit(X, y)
    rest = np.delete(np.arange(7), 2)
    expected = criterion.value(np.arange(7)) - criterion.value(rest)
    assert_allclose(criterion.loss(np.arange(7))[2], expected, rtol=1e-12)
