"""Tables of ``benchmarks.known_truth``: relevant columns have an effect, the others have none."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.known_truth import FEWEST_POSITIVES, METHODS, Table, encode, make_table, measure

SEEDS = range(12)
#: Permutations of the target; the smallest p-value is 1 / (N_PERMUTED + 1).
N_PERMUTED = 199


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    return [make_table(seed, max_rows=500) for seed in SEEDS]


def p_values(table: Table) -> dict[str, float]:
    """Return the permutation p-value of each column, cut into at most six cells."""
    X, discrete = encode(table.frame)
    rng = np.random.default_rng(0)
    y = table.y - table.y.mean()
    targets = np.column_stack([y, *(rng.permutation(y) for _ in range(N_PERMUTED))])
    found = {}
    for j, name in enumerate(table.frame):
        codes = X[:, j] if discrete[j] else pd.qcut(X[:, j], 6, labels=False, duplicates="drop")
        codes, levels = pd.factorize(codes, use_na_sentinel=False)
        cells = np.eye(len(levels))[codes]
        explained = ((cells.T @ targets) ** 2 / cells.sum(axis=0)[:, None]).sum(axis=0)
        found[name] = float((explained >= explained[0] - 1e-9).mean())
    return found


@pytest.mark.parametrize("noise", [False, True])
def test_only_relevant_columns_have_an_effect(tables, noise):
    if noise:
        tables = [make_table(seed, noise=True, max_rows=500) for seed in SEEDS]
    found = [(p, name in table.relevant) for table in tables for name, p in p_values(table).items()]
    true, false = (np.array([p for p, relevant in found if relevant == kind]) for kind in (1, 0))
    assert len(false) > 250
    for level in (0.01, 0.05, 0.5):  # ties, for example of rare flags, only make p-values larger
        assert (false <= level).mean() < level + 3.5 * (level * (1 - level) / len(false)) ** 0.5
    # a test of one column in six cells misses some that a model of all effects finds
    assert len(true) == 0 if noise else (true <= 0.05).mean() > 0.7


def test_noise_tables_have_no_relevant_column():
    table = make_table(0, noise=True)
    assert not table.relevant
    assert all(name.startswith("noise_") for name in table.frame)


def test_the_oracle_beats_the_baseline_and_positives_are_exact(tables):
    for table in tables:
        facts = table.facts
        if facts["task"] == "regression":
            assert facts["oracle"] > 0.1
        else:
            assert facts["oracle"] > 0.6
            assert table.y.sum() == round(facts["n"] * facts["rate"]) >= FEWEST_POSITIVES


def test_every_kind_of_table_is_drawn_and_described(tables):
    kinds = ["date", "true_date", "leak", "missing", "duplicates", "groups"]
    facts = pd.DataFrame([make_table(seed, max_rows=200).facts for seed in range(40)])
    assert facts[kinds].any().all()
    assert not facts[kinds].all().any()
    for table in tables:
        assert len(table.frame) == len(table.y) == table.facts["n"]
        assert 2 <= table.facts["true"] <= 6
        assert 8 <= len(table.frame.columns) <= 63
        assert table.frame.isna().any(axis=None) == table.facts["missing"]
        for group in table.groups.values():
            assert set(group) <= set(table.frame) - set(table.relevant)
        for name, source in table.relevant.items():
            pd.testing.assert_series_equal(
                table.frame[name], table.frame[source], check_names=False
            )


def test_a_seed_determines_the_table():
    first, second, third = make_table(3), make_table(3), make_table(4)
    pd.testing.assert_frame_equal(first.frame, second.frame)
    assert not first.frame.equals(third.frame)


def test_a_selection_is_compared_with_the_truth(tables, monkeypatch):
    table = next(table for table in tables if len(set(table.relevant.values())) == 3)
    one, other = list(dict.fromkeys(table.relevant.values()))[:2]
    noise = [name for name in table.frame if name not in table.relevant]
    monkeypatch.setitem(METHODS, "fixed", lambda table: ([one, other, *noise[:2]], [noise[0]]))
    found = measure(table, "fixed")
    assert (found["recall"], found["false"], found["first"]) == (pytest.approx(2 / 3), 2, False)
    monkeypatch.setitem(METHODS, "fixed", lambda table: 1 / 0)
    found = measure(table, "fixed")
    assert (found["recall"], found["nothing"]) == (0, True)
    assert "ZeroDivisionError" in found["error"]
