"""Information and dependence: mRMR, Parzen windows and HSIC against simple code.

python -m benchmarks.information

Whole searches are timed, including validation, scaling, discretisation and the choice of widths.
Baselines are measured in the same run on a part of the work, and their times are scaled up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks import compare, medians
from tamis.criteria import HSIC, MRMR, ParzenInformation
from tamis.search import Backward, Forward

#: Number of steps, of levels, and of columns on which a slow baseline is measured.
PICKS, LEVELS, PART = 50, 3, 200
#: Number of columns, and number of steps for fastcan.
COLUMNS, FEWER = 20_000, 30
#: Number of rows, and smallest accepted ratios to tamis on ten levels, mrmr_selection and fastcan.
FLOAT_GOALS = [(100, 0.5, 100, 1.5), (2000, 0.5, 100, 1.5)]
#: The same on three levels: ratios to mrmr_selection, and to a loop with bincount.
CODE_GOALS = [(100, 1000, 150), (2000, 200, 150)]
#: Rows, columns and classes, and smallest accepted ratios for Parzen windows and for HSIC.
PAIR_GOALS = [(2000, 36, 6, 14, 20), (330, 166, 2, 12, 20)]


def genes(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of floats, some of which depend on the class."""
    draw = np.random.default_rng(0)
    y = draw.integers(2, size=n_samples)
    X = draw.normal(size=(n_samples, COLUMNS))
    X[:, :100] += 0.4 * y[:, None]
    return np.asfortranarray(X), y


def ten_levels(X: np.ndarray) -> np.ndarray:
    """Return each column cut at its deciles."""
    cut = np.zeros(X.shape, order="F")
    for values in np.quantile(X, np.arange(1, 10) / 10, axis=0):
        cut += values <= X
    return cut


def codes(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of few levels, some of which depend on the class."""
    draw = np.random.default_rng(0)
    y = draw.integers(LEVELS, size=n_samples)
    X = draw.integers(LEVELS, size=(n_samples, n_features))
    copied = draw.random((n_samples, 100)) < 0.4
    X[:, :100] = np.where(copied, y[:, None], X[:, :100])
    return X, y


def clouds(n_samples: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian classes with different means."""
    draw = np.random.default_rng(0)
    y = draw.integers(n_classes, size=n_samples)
    centres = 0.5 * draw.normal(size=(n_classes, n_features))
    X = draw.normal(size=(n_samples, n_features)) + centres[y]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def bincount_information(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mutual information of two coded columns from a contingency table."""
    table = np.bincount(a * LEVELS + b, minlength=LEVELS**2).reshape(LEVELS, LEVELS) / len(a)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / product[seen])).sum())


def bincount_mrmr(X: np.ndarray, y: np.ndarray, n_picks: int) -> list[int]:
    """Run mRMR by a loop over the candidates, with a contingency table for each pair."""
    columns = [np.ascontiguousarray(column) for column in X.T]
    relevance = np.array([bincount_information(column, y) for column in columns])
    picks, shared = [int(relevance.argmax())], np.zeros(len(columns))
    while len(picks) < n_picks:
        last = columns[picks[-1]]
        for j in set(range(len(columns))).difference(picks):
            shared[j] += bincount_information(columns[j], last)
        score = relevance - shared / len(picks)
        score[picks] = -np.inf
        picks.append(int(score.argmax()))
    return picks


def peer_mrmr(X: np.ndarray, y: np.ndarray) -> Callable[[], object] | None:
    """Return a function that runs mrmr_selection, or None if it is not installed."""
    try:
        import pandas as pd
        from mrmr import mrmr_classif
    except ImportError:
        return None
    table, target = pd.DataFrame(X.astype(float)), pd.Series(y)
    return lambda: mrmr_classif(table, target, K=PICKS, n_jobs=1, show_progress=False)


def peer_fastcan(X: np.ndarray, y: np.ndarray) -> Callable[[], object] | None:
    """Return a function that runs fastcan, or None if it is not installed."""
    try:
        from fastcan import FastCan
    except ImportError:
        return None
    return lambda: FastCan(FEWER, verbose=0).fit(X, y)


def whole(seconds: float, n_features: int = COLUMNS) -> float:
    """Extrapolate the seconds of a search on ``PART`` columns to all columns."""
    # each step after the first scores all remaining candidates
    return seconds * n_features * PICKS / (PART * PICKS - PICKS * (PICKS - 1) / 2)


def compare_floats(n_samples: int, levels_goal: float, *goals: float) -> list[str]:
    """Print the ratios for floats; return those that miss their goal."""
    X, y = genes(n_samples)
    levels = ten_levels(X)
    search, fewer = (Forward(MRMR(), n_features_to_select=size) for size in (PICKS, FEWER))
    ways = {
        "levels": lambda: search.fit(levels, y),
        "floats": lambda: search.fit(X, y),
        "fewer": lambda: fewer.fit(X, y),
        "mrmr_selection": peer_mrmr(X[:, :PART], y),
        "fastcan": peer_fastcan(X, y),
    }
    ways = {name: way for name, way in ways.items() if way}
    ways["levels"]()  # compiles
    seconds = dict(zip(ways, medians(*ways.values()), strict=True))
    rows = f"of {COLUMNS} floats, {n_samples} rows"
    missed = compare(
        f"mRMR, {PICKS} {rows}", "tamis on ten levels", seconds["levels"], seconds["floats"],
        levels_goal,
    )  # fmt: skip
    theirs = [("mrmr_selection", PICKS, "floats", whole), ("fastcan", FEWER, "fewer", float)]
    for (peer, picks, ours, scaled), goal in zip(theirs, goals, strict=True):
        if peer not in seconds:
            print(f"  {peer} is not installed")
            continue
        task = f"mRMR, {picks} {rows}, against {peer}"
        missed += compare(task, peer, scaled(seconds[peer]), seconds[ours], goal)
    return missed


def compare_codes(n_samples: int, peer_goal: float, loop_goal: float) -> list[str]:
    """Print the ratios for three levels; return those that miss their goal."""
    X, y = codes(n_samples, COLUMNS)
    table = np.asfortranarray(X, dtype=float)
    search = Forward(MRMR(), n_features_to_select=PICKS, standardize=False)
    part = X[:, :PART]
    functions = [lambda: bincount_mrmr(part, y, PICKS), lambda: search.fit(table, y)]
    if peer := peer_mrmr(part, y):
        functions.append(peer)
    loop, ours, *others = medians(*functions)
    same = bincount_mrmr(part, y, 10) == picked(Forward(MRMR(), n_features_to_select=10), part, y)
    task = f"mRMR, {PICKS} of {COLUMNS} in three levels, {n_samples} rows"
    missed = compare(task, "a bincount loop", whole(loop), ours, loop_goal, same)
    for seconds in others:
        task = f"{task}, against mrmr_selection"
        missed += compare(task, "mrmr_selection", whole(seconds), ours, peer_goal)
    return missed


def picked(search: Forward, X: np.ndarray, y: np.ndarray) -> list[int]:
    """Return the columns in the order of selection."""
    return [int(step.moved[0]) for step in search.fit(X.astype(float), y).trace_]


def kernel(Z: np.ndarray, gamma: float) -> np.ndarray:
    """Return a Gaussian kernel matrix, with distances from a matrix product."""
    squares = (Z**2).sum(axis=1)
    return np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * Z @ Z.T, 0))


def naive_parzen(y: np.ndarray, sigma: float) -> Callable[[np.ndarray], float]:
    """Return a function that computes the Parzen information of columns from scratch."""
    onehot = (y[:, None] == np.unique(y)).astype(float)
    share = onehot.mean(axis=0)[y]

    def value(Z: np.ndarray) -> float:
        sums = kernel(Z, 1 / (2 * sigma**2)) @ onehot
        return float(np.log(sums[np.arange(len(y)), y] / sums.sum(axis=1) / share).mean())

    return value


def naive_hsic(y: np.ndarray) -> Callable[[np.ndarray], float]:
    """Return a function that computes unbiased HSIC, with the target's kernel computed once."""
    n = len(y)
    L = (y[:, None] == y).astype(float)
    np.fill_diagonal(L, 0)
    rows = L.sum(axis=1)
    W = L + rows.sum() / ((n - 1) * (n - 2)) - (rows[:, None] + rows) / (n - 2)
    np.fill_diagonal(W, 0)

    def value(Z: np.ndarray) -> float:
        return float((kernel(Z, 1 / (2 * Z.shape[1])) * W).sum() / (n * (n - 3)))

    return value


def compare_pairs(
    name: str, criterion: Any, naive: Callable[[np.ndarray], float], X: Any, y: Any, goal: int
) -> list[str]:
    """Print the ratio for a whole elimination. The simple code is timed at three sizes only."""
    d = X.shape[1]
    sizes = [1, d // 2, d - 1]
    tables = [np.ascontiguousarray(X[:, :size]) for size in sizes]
    values = [lambda table=table: naive(table) for table in tables]
    search = Backward(criterion, n_features_to_select=1)
    single = Backward(clone(criterion).set_params(precision="single"), n_features_to_select=1)
    *seconds, ours, halved = medians(*values, lambda: search.fit(X, y), lambda: single.fit(X, y))
    # a step with m columns left scores m tables of m - 1 columns; the full table is scored once
    left = np.arange(2, d + 1)
    naively = float((left * np.interp(left - 1, sizes, seconds)).sum() + seconds[-1])
    first = [naive(np.delete(X, j, axis=1)) for j in range(d)]
    best = first[search.trace_[1].moved[0]] >= max(first) - 1e-12
    task = f"{name}, backward from {d} columns, {len(X)} rows"
    missed = compare(task, "numpy", naively, ours, goal, best)
    same = "same" if np.array_equal(single.order_, search.order_) else "another"
    print(f"    in single precision {halved:.3f} s, ratio {naively / halved:.0f}, {same} order")
    return missed


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    missed = []
    for n_samples, *goals in FLOAT_GOALS:
        missed += compare_floats(n_samples, *goals)
    for n_samples, *goals in CODE_GOALS:
        missed += compare_codes(n_samples, *goals)
    for n_samples, n_features, n_classes, parzen_goal, hsic_goal in PAIR_GOALS:
        X, y = clouds(n_samples, n_features, n_classes)
        parzen = ParzenInformation()
        width = parzen.fit(X, y).sigma_
        missed += compare_pairs("MI-PW", parzen, naive_parzen(y, width), X, y, parzen_goal)
        missed += compare_pairs("HSIC", HSIC(), naive_hsic(y), X, y, hsic_goal)
    if missed:
        raise SystemExit("; ".join(missed))


def short() -> None:
    """Measure mRMR on tables of few rows."""
    compare_floats(*FLOAT_GOALS[0])
    compare_codes(*CODE_GOALS[0])


if __name__ == "__main__":
    main()
