"""The rule of AUTO, against loops over its definition."""

import numpy as np
import pytest

from tamis.auto.machine import coupled
from tamis.auto.rule import Allowed, corrected, kept_candidate

#: Standard errors, and shares of the loss that they may not pass.
RULES = [Allowed(0.0), Allowed(0.25), Allowed(1.0), Allowed(1.0, 0.03)]


def kept_by_loops(losses, sizes, allowed):
    """Smallest size that is allowed; there the least, the first."""
    n = len(losses)
    means = [sum(row[c] for row in losses) / n for c in range(len(sizes))]
    best = min(range(len(sizes)), key=lambda c: means[c])
    spread = sum((row[best] - means[best]) ** 2 for row in losses) / (n - 1)
    error = (spread / n) ** 0.5
    limit = means[best] + min(allowed.n_errors * error, allowed.share * means[best])
    close = [c for c in range(len(sizes)) if means[c] <= limit]
    size = min(sizes[c] for c in close)
    return min((c for c in close if sizes[c] == size), key=lambda c: (means[c], c))


def tables(n_tables=60):
    rng = np.random.default_rng(0)
    for _ in range(n_tables):
        n, m = rng.integers(5, 40), rng.integers(1, 12)
        difficulty = rng.random((n, 1))
        yield difficulty + 0.2 * rng.random((n, m)), rng.choice([1, 2, 5, 10], size=m)


@pytest.mark.parametrize("allowed", RULES)
def test_the_kept_candidate(allowed):
    kept = [kept_candidate(losses, sizes, allowed) for losses, sizes in tables()]
    loops = [kept_by_loops(losses.tolist(), sizes, allowed) for losses, sizes in tables()]
    assert kept == loops
    assert len(set(kept)) > 3


def test_of_equals_the_first_is_kept():
    losses = np.array([[1.0, 0.5, 0.5, 0.5], [1.0, 0.5, 0.5, 0.5]])
    assert kept_candidate(losses, np.array([1, 2, 2, 5]), Allowed(0.25)) == 1


def test_few_rows_that_lose_nearly_all_hide_no_better_list():
    """Of 60 rows three lose 1: a third of a standard error is a fifth of that loss."""
    losses = np.zeros((60, 2))
    losses[:3] = 1.0
    losses[3:6, 0] = 0.17
    assert kept_candidate(losses, np.array([1, 5]), Allowed(1 / 3)) == 0
    assert kept_candidate(losses, np.array([1, 5]), Allowed(1 / 3, 0.05)) == 1


def test_where_the_least_loss_is_none_no_loss_is_allowed():
    losses = np.array([[0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for allowed in RULES:
        assert kept_candidate(losses, np.array([1, 2, 5]), allowed) == 1


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("allowed", RULES[1:])
def test_the_corrected_error(allowed, grouped):
    for losses, sizes in tables(8):
        n = len(losses)
        groups = np.arange(n) // 3 if grouped else None
        wrong, nothing = (losses > 0.6).astype(float), np.linspace(0, 1, n)
        priced = [(losses, nothing), (wrong, nothing**2)]
        found = corrected(
            losses, sizes, allowed, priced, np.random.default_rng(3), groups, n_draws=70
        )
        labels = np.arange(n) if groups is None else groups
        n_labels = labels.max() + 1
        rng, sums = np.random.default_rng(3), []
        drawn = np.concatenate([rng.integers(n_labels, size=(k, n_labels)) for k in (50, 20)])
        for draw in drawn:
            rows = [row for label in draw for row in np.flatnonzero(labels == label)]
            left = [row for row in range(n) if row not in rows]
            if left:
                kept = kept_by_loops(losses[rows].tolist(), sizes, allowed)
                sums.append([p[left, kept].mean() for p, _ in priced])
                sums[-1] += [none[left].mean() for _, none in priced]
        np.testing.assert_allclose([*found.kept, *found.nothing], np.mean(sums, axis=0), rtol=1e-9)


def test_the_best_of_many_is_corrected():
    rng = np.random.default_rng(0)
    losses = 1 + 0.5 * rng.normal(size=(40, 60))  # nothing to find: all have the mean 1
    sizes = np.repeat([1, 2, 5], 20)
    kept = kept_candidate(losses, sizes, Allowed(0.0))
    found = corrected(losses, sizes, Allowed(0.0), [(losses, np.ones(40))], rng)
    assert losses[:, kept].mean() < 0.88
    assert abs(found.kept[0] - 1) < 0.06


def test_shares_of_several_classes_from_those_of_pairs():
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    pairs = np.column_stack(
        [shares[:, a] / (shares[:, a] + shares[:, b]) for a, b in [(0, 1), (0, 2), (1, 2)]]
    )
    np.testing.assert_allclose(coupled(pairs, 3), shares, rtol=1e-12)
    sure = coupled(np.array([[1.0, 1.0, 0.5]]), 3)
    assert sure[0, 0] > 0.999
