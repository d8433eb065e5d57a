"""Tests of columns given all others, on tables with a known truth: level, FDR, power and time.

    python -m benchmarks.conditional_tests --tables 200 --seed 0 --settings linear noise

Columns follow an autoregressive process with coefficient 0.6. Five of them are relevant. Three
decoys have a correlation of 0.85 with a relevant column. Given this column, they are independent of
the target. A column is null if it is independent of the target given all others. ``level`` is the
share of decoys with p <= 0.05. For ``fdr`` and ``power``, columns are selected by the
Benjamini-Hochberg procedure at 0.1. ``any`` is the share of tables with a false discovery. Time is
CPU time on the first tables, as a multiple of one search and one fit. hidimstat is compared if it
is installed and ``--peers`` is given.
"""

import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from time import process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV, Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from tamis.auto import Auto
from tamis.criteria import HSIC, Correlation
from tamis.exceptions import TamisError
from tamis.meta import ConditionalTest
from tamis.recipes import method
from tamis.search import Ranking

#: Correlation of neighbouring columns, and of a decoy with its relevant column.
NEAR, DECOY = 0.6, 0.85
#: Effect of each relevant column. With this effect, least squares on all columns has a power of
#: 0.76 to 0.81 at d = 20 and n = 300 (two sets of 200 tables).
EFFECT = 0.36
#: Number of columns that the searches select.
SELECTED = 10
#: Number of tables on which time is measured.
TIMED = 20
#: False discovery rate.
FDR = 0.1

Generator = np.random.Generator


class Known(NamedTuple):
    """A table whose relevant columns and decoys are known."""

    X: np.ndarray
    y: np.ndarray
    relevant: np.ndarray
    decoys: np.ndarray
    groups: np.ndarray | None = None


class Setting(NamedTuple):
    """A kind of table, and the search and model that are tested on it."""

    make: Callable[[Generator], Known]
    search: Any
    estimator: Any = None
    options: Mapping[str, Any] = MappingProxyType({})


def chain(rng: Generator, n: int, d: int) -> np.ndarray:
    """Return normal columns, each correlated with the next."""
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = NEAR * X[:, j - 1] + np.sqrt(1 - NEAR**2) * X[:, j]
    return X


def columns(
    rng: Generator, n: int, d: int, shape: Any = lambda x: x, decoy: Any = lambda x: x
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return columns, the indices of the relevant columns, and the indices of the decoys."""
    X, step = shape(chain(rng, n, d)), d // 5
    relevant = rng.permutation(np.arange(5) * step + 1)
    decoys = np.sort(relevant)[:3] + step // 2
    for parent, j in zip(relevant, decoys, strict=False):
        x = decoy(X[:, parent])
        spread = x.std() or 1.0
        X[:, j] = DECOY * x / spread + np.sqrt(1 - DECOY**2) * rng.normal(size=n)
    return X, relevant, decoys


def linear(n: int, d: int, effect: float = EFFECT, **shapes: Any) -> Callable[[Generator], Known]:
    """Return a function that draws tables with a linear numeric target."""

    def make(rng: Generator) -> Known:
        X, relevant, decoys = columns(rng, n, d, **shapes)
        signs = rng.choice([-1.0, 1.0], 5)
        Z = StandardScaler().fit_transform(X[:, relevant])
        return Known(X, effect * Z @ signs + rng.normal(size=n), relevant, decoys)

    return make


def noise(n: int, d: int) -> Callable[[Generator], Known]:
    """Return a function that draws tables without any relevant column."""
    make = linear(n, d, 0.0)
    return lambda rng: make(rng)._replace(relevant=np.array([], dtype=int))


def classes(n: int, d: int, n_classes: int = 2) -> Callable[[Generator], Known]:
    """Return a function that draws tables whose target is cut into classes of equal size."""
    make = linear(n, d, 0.6)

    def cut(rng: Generator) -> Known:
        table = make(rng)
        ranks = stats.rankdata(table.y, "ordinal") - 1
        return table._replace(y=(ranks * n_classes // n).astype(int).astype(str))

    return cut


def nonlinear(n: int, d: int, decoy: Any = lambda x: x) -> Callable[[Generator], Known]:
    """Return a function that draws tables whose target is not linear in the columns."""

    def make(rng: Generator) -> Known:
        X, relevant, decoys = columns(rng, n, d, decoy=decoy)
        a, b, c, e, g = X[:, relevant].T
        parts = a**2 / np.sqrt(2), 1.7 * np.abs(b), np.tanh(2 * c), 1.5 * np.sin(e), g
        return Known(X, 0.7 * sum(parts) + rng.normal(size=n), relevant, decoys)

    return make


def squares(n: int, d: int) -> Callable[[Generator], Known]:
    """Return a function that draws tables with target and decoys that depend on squares."""

    def make(rng: Generator) -> Known:
        X, relevant, decoys = columns(rng, n, d, decoy=np.square)
        return Known(
            X, 0.5 * (X[:, relevant] ** 2).sum(axis=1) + rng.normal(size=n), relevant, decoys
        )

    return make


def waves(n: int, d: int) -> Callable[[Generator], Known]:
    """Return a function that draws tables that neither the model nor the sampler can describe."""

    def wave(x: np.ndarray) -> np.ndarray:
        return np.sin(3 * x)

    def make(rng: Generator) -> Known:
        X, relevant, decoys = columns(rng, n, d, decoy=wave)
        return Known(X, wave(X[:, relevant]).sum(axis=1) + rng.normal(size=n), relevant, decoys)

    return make


def duplicated(n: int, d: int) -> Callable[[Generator], Known]:
    """Return a function that draws tables in which two relevant columns have a duplicate."""
    make = linear(n, d)

    def copy(rng: Generator) -> Known:
        table = make(rng)
        twins = np.setdiff1d(np.arange(d), np.r_[table.relevant, table.decoys])[:2]
        table.X[:, twins] = table.X[:, table.relevant[:2]]
        # neither of two duplicates is informative given the other
        return table._replace(relevant=table.relevant[2:], decoys=np.r_[twins, table.relevant[:2]])

    return copy


def grouped(n_groups: int, size: int, d: int, *, given: bool) -> Callable[[Generator], Known]:
    """Return a function that draws tables whose rows form groups with similar X and y."""

    def make(rng: Generator) -> Known:
        groups, n = np.repeat(np.arange(n_groups), size), n_groups * size
        X, relevant, decoys = columns(rng, n, d)
        X = X + 2 * chain(rng, n_groups, d)[groups]
        for parent, j in zip(relevant, decoys, strict=False):
            X[:, j] = X[:, parent] * DECOY + X.std() * np.sqrt(1 - DECOY**2) * (
                0.3 * rng.normal(size=n) + 0.95 * rng.normal(size=n_groups)[groups]
            )
        signs = rng.choice([-1.0, 1.0], 5)
        y = (
            0.3 * X[:, relevant] @ signs
            + rng.normal(size=n)
            + 1.5 * rng.normal(size=n_groups)[groups]
        )
        return Known(X, y, relevant, decoys, groups if given else None)

    return make


def tails(X: np.ndarray) -> np.ndarray:
    """Return columns with a t distribution with two degrees of freedom."""
    return np.asarray(stats.t.ppf(stats.norm.cdf(X), 2))


def binary(X: np.ndarray) -> np.ndarray:
    """Return columns of 0 and 1. The first has 50 % ones, and the last has 10 %."""
    return (np.linspace(0, 1.28, X.shape[1]) < X).astype(float)


def counts(X: np.ndarray) -> np.ndarray:
    """Return columns of small counts."""
    return np.asarray(stats.poisson.ppf(stats.norm.cdf(X), 1.0))


RELEVANCE = Ranking(Correlation(), n_features_to_select=SELECTED)
DEPENDENCE = Ranking(HSIC(), n_features_to_select=SELECTED)
MRMR = method(f"mrmr(n_features_to_select={SELECTED})")
SETTINGS: dict[str, Setting] = {
    "linear": Setting(linear(300, 20), RELEVANCE),
    "linear, n 1000": Setting(linear(1000, 20), RELEVANCE),
    "linear, d 100": Setting(linear(300, 100), RELEVANCE),
    "linear, d 100, n 1000": Setting(linear(1000, 100), RELEVANCE),
    "noise": Setting(noise(300, 20), RELEVANCE),
    "noise, d 100": Setting(noise(300, 100), RELEVANCE),
    "mrmr": Setting(linear(300, 20), MRMR),
    "mrmr, no neighbours": Setting(linear(300, 20), MRMR, None, {"neighbours": 0}),
    "Auto": Setting(linear(300, 20), Auto(budget=1)),
    "Auto, d 100": Setting(linear(300, 100), Auto(budget=1)),
    "Auto, noise": Setting(noise(300, 20), Auto(budget=1, n_features_to_select=5)),
    "Auto, nonlinear": Setting(nonlinear(300, 20), Auto(budget=4)),
    "Auto, classes": Setting(classes(300, 20), Auto(budget=1)),
    "classes": Setting(classes(300, 20), RELEVANCE),
    "classes, d 100": Setting(classes(300, 100), RELEVANCE),
    "three classes": Setting(classes(300, 20, 3), RELEVANCE),
    "four repeats": Setting(linear(300, 20), RELEVANCE, None, {"n_repeats": 4}),
    "SVM": Setting(nonlinear(300, 20), DEPENDENCE, SVR()),
    "forest": Setting(
        nonlinear(300, 20), DEPENDENCE, RandomForestRegressor(50, min_samples_leaf=3)
    ),
    "squared decoys, ridge": Setting(squares(300, 20), DEPENDENCE),
    "squared decoys, ridge, linear draws": Setting(
        squares(300, 20), DEPENDENCE, None, {"sampler": "linear"}
    ),
    "squared decoys, SVM": Setting(squares(300, 20), DEPENDENCE, SVR()),
    "waves, ridge": Setting(waves(300, 20), DEPENDENCE),
    "waves, SVM": Setting(waves(300, 20), DEPENDENCE, SVR()),
    "waves, SVM, forest draws": Setting(
        waves(300, 20), DEPENDENCE, SVR(), {"sampler": RandomForestRegressor(50)}
    ),
    "heavy tails": Setting(linear(300, 20, shape=tails), RELEVANCE),
    "heavy tails, SVM": Setting(linear(300, 20, shape=tails), RELEVANCE, SVR()),
    "binary": Setting(linear(300, 20, shape=binary), RELEVANCE),
    "binary, SVM": Setting(linear(300, 20, shape=binary), RELEVANCE, SVR()),
    "counts": Setting(linear(300, 20, shape=counts), RELEVANCE),
    "duplicates": Setting(duplicated(300, 20), RELEVANCE),
    "duplicates, mrmr": Setting(duplicated(300, 20), MRMR),
    "d > n": Setting(linear(100, 200), RELEVANCE),
    "five rows per class": Setting(classes(50, 20, 10), RELEVANCE),
    "ten rows per class": Setting(classes(30, 20, 3), RELEVANCE),
    "grouped rows": Setting(grouped(60, 5, 20, given=True), RELEVANCE),
    "grouped rows, groups not given": Setting(grouped(60, 5, 20, given=False), RELEVANCE),
}


def model_of(setting: Setting) -> Any:
    """Return the model of the target. The default is a ridge regression."""
    return Ridge() if setting.estimator is None else setting.estimator


def tamis_test(setting: Setting, table: Known, seed: int) -> np.ndarray:
    """Return the p-values of ConditionalTest, or of Auto with ``confirm=True``."""
    if isinstance(setting.search, Auto):
        auto = clone(setting.search).set_params(random_state=seed, confirm=True)
        found = auto.fit(table.X, table.y).p_values_
        return np.ones(table.X.shape[1]) if found is None else np.asarray(found)
    test = ConditionalTest(
        setting.search, setting.estimator, random_state=seed, fdr=FDR, **setting.options
    )
    return np.asarray(test.fit(table.X, table.y, groups=table.groups).p_values_)


def least_squares(setting: Setting, table: Known, seed: int) -> np.ndarray:
    """Return the p-values of least squares on all columns. They are valid for linear tables."""
    A = np.column_stack([np.ones(len(table.X)), table.X])
    inverse = np.linalg.pinv(A.T @ A)
    slopes = inverse @ A.T @ table.y
    rest = max(1, len(A) - A.shape[1])
    variance = ((table.y - A @ slopes) ** 2).sum() / rest
    t = slopes / np.sqrt(np.diag(inverse) * variance)
    return np.asarray(2 * stats.t.sf(np.abs(t[1:]), rest))


def guests() -> dict[str, Callable[[Setting, Known, int], np.ndarray]]:
    """Return the tests of hidimstat, or none if it is not installed."""
    try:
        from hidimstat import CFI, D0CRT, LOCO
    except ImportError:
        return {}

    def halves(make: Any) -> Callable[[Setting, Known, int], np.ndarray]:
        def test(setting: Setting, table: Known, seed: int) -> np.ndarray:
            X = StandardScaler().fit_transform(table.X)
            train, rest, known, others = train_test_split(X, table.y, random_state=seed)
            model = clone(model_of(setting)).fit(train, known)
            found = make(model).fit(train, known)
            found.importance(rest, others)
            return np.asarray(found.pvalues_)

        return test

    def distilled(setting: Setting, table: Known, seed: int) -> np.ndarray:
        X = StandardScaler().fit_transform(table.X)
        model = LassoCV(alphas=10, random_state=seed)
        found = D0CRT(model, screening_threshold=100, random_state=seed)
        found.fit_importance(X, table.y)
        return np.asarray(found.pvalues_)

    return {
        "hidimstat CFI": halves(lambda model: CFI(model, random_state=0)),
        "hidimstat LOCO": halves(LOCO),
        "hidimstat D0CRT": distilled,
    }


def measure(table: Known, p: np.ndarray) -> list[float]:
    """Return level, share of false discoveries, whether there are any, and power."""
    found = stats.false_discovery_control(np.nan_to_num(p, nan=1.0)) <= FDR
    null = np.setdiff1d(np.arange(len(p)), table.relevant)
    false = float(found[null].sum())
    power = float(found[table.relevant].mean()) if len(table.relevant) else np.nan
    return [
        float((p[table.decoys] <= 0.05).mean()),
        float((p[null] <= 0.05).mean()),
        false / max(1, found.sum()),
        float(false > 0),
        power,
    ]


def compare(name: str, n_tables: int, seed: int, *, peers: bool) -> None:
    """Print a line for each test on the tables of a setting."""
    setting = SETTINGS[name]
    tests = {
        "ConditionalTest": tamis_test,
        **({"least squares": least_squares, **guests()} if peers else {}),
    }
    for test_name, test in tests.items():
        rows, failures, seconds, unit = [], [], 0.0, 0.0
        for index in range(n_tables):
            table = setting.make(np.random.default_rng([seed, index]))
            start = process_time()
            if index < TIMED:
                search = clone(setting.search).fit(table.X, table.y)
                if table.y.dtype.kind == "f":
                    Z = StandardScaler().fit_transform(table.X[:, search.support_])
                    clone(model_of(setting)).fit(Z, table.y)
                unit += process_time() - start
            start = process_time()
            try:
                p = test(setting, table, index)
            except TamisError as error:
                failures.append(str(error))
                continue
            seconds += (process_time() - start) * (index < TIMED)
            rows.append(measure(table, p))
        if not rows:
            print(f"{name:36} {test_name:18} refused: {failures[0]}", flush=True)
            continue
        means = np.nanmean(rows, axis=0)
        error = np.std([row[0] for row in rows]) / np.sqrt(len(rows))
        level, null, fdr, some, power = means
        print(
            f"{name:36} {test_name:18} {len(rows):4} tables  decoys {level:.3f} ± {error:.3f}  "
            f"nulls {null:.3f}  fdr {fdr:.3f}  any {some:.3f}  power {power:.3f}  "
            f"time {seconds / unit:5.1f}",
            flush=True,
        )


def main() -> None:
    """Print a table of the settings."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", nargs="*", default=["linear", "noise"])
    parser.add_argument("--peers", action="store_true")
    asked, _ = parser.parse_known_args()
    warnings.simplefilter("ignore")
    for name in asked.settings or SETTINGS:
        compare(name, asked.tables, asked.seed, peers=asked.peers)


if __name__ == "__main__":
    main()
