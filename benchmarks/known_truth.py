"""Business tables with known relevant columns: the selections of tamis and other methods.

    python -m benchmarks.known_truth --tables 200 --seed 0 --workers 2 --out results.csv

A table has 8 to 60 columns. Two to six of them have an effect on the target. Some tables also have
a leak, duplicates or an identifier. In noise tables, no column has an effect. Methods that only
rank columns are given the true number. The summary has means ± one standard error over tables.
"""

import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

import tamis
from tamis.auto import Auto

ROWS = (200, 500, 1500, 5000)
#: Shares of positives; None is a regression target.
RATES = (0.5, 0.2, 0.05, 0.03, None)
#: Least number of positives in a table, and of positives (or rows) for each relevant column.
FEWEST_POSITIVES, POSITIVES_PER_COLUMN = 10, 5
#: Expected z-values of a relevant column in the oracle model. Each table uses one of them.
Z_VALUES = (5.0, 8.0)
#: Range of the smallest standard deviation of all effects together. In large tables, the z-values
#: alone would give smaller effects.
SPREADS = (0.5, 1.2)
#: Number of additional rows, on which the oracle model is tested.
FRESH = 10_000
#: A signal is clear if the AUC or R² of the oracle model on fresh rows is at least this value.
CLEAR = {"classification": 0.75, "regression": 0.35}

Generator = np.random.Generator
#: Selected columns, and the column ranked first (several if they are one group).
Found = tuple[Sequence[str], Sequence[str]]


class Table(NamedTuple):
    """A table whose relevant columns are known.

    ``relevant`` maps each relevant column to itself, or to the column that it duplicates.
    ``groups`` is passed as ``feature_groups``. ``facts`` describes the table.
    """

    frame: pd.DataFrame
    y: np.ndarray
    relevant: dict[str, str]
    groups: dict[str, list[str]]
    facts: dict[str, Any]


def make_table(seed: int, *, noise: bool = False, max_rows: int = max(ROWS)) -> Table:
    """Draw a table. With ``noise``, no column has an effect on the target."""
    rng = np.random.default_rng([seed, noise])
    sizes = [(n, rate) for n in ROWS for rate in RATES if n <= max_rows]
    sizes = [(n, rate) for n, rate in sizes if n * (rate or 1) >= FEWEST_POSITIVES]
    n, rate = sizes[rng.integers(len(sizes))]
    events = round(n * (rate or 1))
    n_true = 0 if noise else int(rng.integers(2, 1 + min(6, events // POSITIVES_PER_COLUMN)))
    kinds = rng.choice(["linear", "step", "u-shaped", "category"], n_true).tolist()
    if n_true and rng.random() < 0.2:
        kinds[0] = "date"
    drawn = [_true_column(rng, kind, n + FRESH, events) for kind in kinds]
    effects = np.array([effect for _, effect in drawn]).reshape(n_true, n + FRESH).T
    y, rows, oracle = _target(rng, effects, n, rate)
    columns = {f"{kind}_{j}": drawn[j][0][rows] for j, kind in enumerate(kinds)}
    if leak := bool(n_true and rng.random() < 0.1):
        columns["leak"] = y + 0.15 * y.std() * rng.standard_normal(n)
    relevant = {name: name for name in columns}

    n_noise = int(rng.integers(8, 61)) - len(columns)
    n_dates = int(rng.integers(1, 4)) if rng.random() < 0.5 else 0
    kinds = rng.choice(["number", "flag", "category"], n_noise, p=[0.5, 0.2, 0.3]).tolist()
    most_levels = int(rng.choice([10, 100, 500]))
    for j, kind in enumerate(["date"] * n_dates + kinds[n_dates:]):
        columns[f"noise_{kind}_{j}"] = _noise_column(rng, kind, n, most_levels)
    frame = pd.DataFrame(columns)
    if missing := bool(rng.random() < 0.5):
        frame = frame.mask(rng.random(frame.shape) < 0.05)
    if duplicates := bool(rng.random() < 0.3):
        for name in rng.choice(list(columns), 2, replace=False).tolist():
            frame[f"{name}_again"] = frame[name]
            relevant |= {f"{name}_again": name} if name in relevant else {}
    if rng.random() < 0.3:
        frame["noise_id"] = 100_000 + rng.permutation(n)
    groups = {}
    others = [name for name in frame if name not in relevant]
    if rng.random() < 0.25 and len(others) >= 3:
        groups["group"] = rng.permutation(others)[: rng.integers(3, 7)].tolist()
    task = "regression" if rate is None else "classification"
    facts = {
        "seed": seed, "noise": noise, "n": n, "task": task, "rate": rate, "columns": frame.shape[1],
        "true": n_true, "date": n_dates > 0, "true_date": "date_0" in relevant, "leak": leak,
        "levels": frame.select_dtypes(exclude=["number", "datetime"]).nunique().max(),
        "missing": missing, "duplicates": duplicates, "groups": bool(groups),
        "oracle": oracle, "clear": oracle >= CLEAR[task],
    }  # fmt: skip
    return Table(frame[rng.permutation(frame.columns)], y, relevant, groups, facts)


def _true_column(rng: Generator, kind: str, n: int, events: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a relevant column, and its effect with mean 0 and variance 1."""
    if kind == "category":
        values = _levels(rng, n, int(rng.integers(3, 1 + np.clip(events // 3, 3, 30))))
        names, codes = np.unique(values, return_inverse=True)
        effect = rng.standard_normal(len(names))[codes]
    elif kind == "date":  # the target drifts in time
        values = _dates(rng, n)
        effect = values.astype(float)
    else:
        values = rng.uniform(-1, 1, n) if kind == "u-shaped" else rng.standard_normal(n)
        cut = np.quantile(values, rng.uniform(0.3, 0.7))
        effect = {"linear": values, "step": 1.0 * (values > cut), "u-shaped": values**2}[kind]
    return values, (effect - effect.mean()) / effect.std()


def _noise_column(rng: Generator, kind: str, n: int, most_levels: int) -> np.ndarray:
    if kind == "number":
        return (rng.standard_normal(n), rng.lognormal(size=n), rng.poisson(3, n))[rng.integers(3)]
    if kind == "flag":
        return (rng.random(n) < rng.uniform(0.01, 0.1)).astype(int)
    if kind == "date":
        return _dates(rng, n)
    return _levels(rng, n, int(np.exp(rng.uniform(np.log(2), np.log(most_levels + 1)))))


def _levels(rng: Generator, n: int, n_levels: int) -> np.ndarray:
    """Draw a category whose levels have unequal shares."""
    shares = rng.dirichlet(np.full(n_levels, 5.0))
    return np.array([f"level {j}" for j in range(n_levels)])[rng.choice(n_levels, n, p=shares)]


def _dates(rng: Generator, n: int) -> np.ndarray:
    return np.datetime64("2022-01-01", "s") + rng.integers(0, 3 * 365 * 86_400, n)


def _target(
    rng: Generator, effects: np.ndarray, n: int, rate: float | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the target, its rows, and the AUC or R² of an oracle model on the other rows.

    The oracle is a logistic or linear model of the effects themselves. Rows are drawn within each
    class, so the number of positives is exact and the effects are unchanged.
    """
    information = n if rate is None else n * rate * (1 - rate)
    weights = rng.choice(Z_VALUES) * rng.uniform(0.8, 1.2, effects.shape[1]) / information**0.5
    if len(weights):
        weights *= max(1, rng.uniform(*SPREADS) / np.linalg.norm(weights))
    score, rows = effects @ weights, np.arange(n)
    if rate is None:
        y = score + rng.standard_normal(len(score))
    else:
        shift = brentq(lambda shift: expit(shift + score).mean() - rate, -50, 50)
        y = (rng.random(len(score)) < expit(shift + score)).astype(int)
        k = round(n * rate)
        rows = np.sort(np.r_[np.flatnonzero(y)[:k], np.flatnonzero(1 - y)[: n - k]])
    if not len(weights):
        return y[rows], rows, np.nan
    fresh = np.setdiff1d(np.arange(len(y)), rows)
    model = LinearRegression() if rate is None else LogisticRegression()
    model.fit(effects[rows], y[rows])
    found = effects[fresh] @ model.coef_.ravel() + model.intercept_
    return y[rows], rows, float((r2_score if rate is None else roc_auc_score)(y[fresh], found))


def encode(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the table as numbers, and a mask of discrete columns.

    Levels become codes, and a missing value is a level. Dates become days. Numbers keep their
    missing values.
    """
    encoded, discrete = frame.copy(), np.zeros(frame.shape[1], dtype=bool)
    for j, name in enumerate(frame):
        if frame[name].dtype.kind == "M":
            encoded[name] = (frame[name] - pd.Timestamp("2022-01-01")).dt.total_seconds() / 86_400
        elif not pd.api.types.is_numeric_dtype(frame[name]):
            encoded[name], discrete[j] = pd.factorize(frame[name], use_na_sentinel=False)[0], True
        else:
            discrete[j] = frame[name].nunique() <= 2
    return encoded.to_numpy(dtype=float), discrete


def _filled(X: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X)


def _ranked(table: Table, scores: np.ndarray, kept: np.ndarray | None = None) -> Found:
    order = np.argsort(-scores, kind="stable")
    names = table.frame.columns
    return names[order[: len(table.relevant)] if kept is None else kept], names[order[:1]]


def select_auto(table: Table, budget: float | None = None) -> Found:
    """Run the default of tamis, or Auto with another budget."""
    method = None if budget is None else Auto(budget)
    options = {"feature_groups": table.groups or None, "random_state": 0}
    found = tamis.select(table.frame.assign(y=table.y), method=method, target="y", **options)
    names = table.frame.columns
    return names[found.support_], names[found.units_.columns(found.order_[:1])]


def select_lightgbm(table: Table) -> Found:
    """Rank by the gain of LightGBM, with categories marked as such."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    X, discrete = encode(table.frame)
    model = LGBMRegressor if table.facts["task"] == "regression" else LGBMClassifier
    made = model(importance_type="gain", n_jobs=1, verbose=-1, random_state=0)
    made.fit(X, table.y, categorical_feature=np.flatnonzero(discrete).tolist())
    return _ranked(table, made.feature_importances_)


def select_mutual_info(table: Table) -> Found:
    """Rank by scikit-learn's mutual information with the target."""
    X, discrete = encode(table.frame)
    regression = table.facts["task"] == "regression"
    score = mutual_info_regression if regression else mutual_info_classif
    return _ranked(table, score(_filled(X), table.y, discrete_features=discrete, random_state=0))


def select_boruta(table: Table) -> Found:
    """Run BorutaPy with the forest of its documentation and 30 iterations."""
    from boruta import BorutaPy

    forest = RandomForestClassifier(max_depth=5, class_weight="balanced")
    if table.facts["task"] == "regression":
        forest = RandomForestRegressor(max_depth=5)
    boruta = BorutaPy(forest, n_estimators=100, max_iter=30, random_state=0)
    boruta.fit(_filled(encode(table.frame)[0]), table.y)
    scores = np.nan_to_num(boruta.importance_history_[1:]).mean(axis=0)
    return _ranked(table, scores, boruta.support_)


METHODS: dict[str, Callable[..., Found]] = {
    "auto": select_auto, "lightgbm": select_lightgbm,
    "mutual-info": select_mutual_info, "boruta": select_boruta,
}  # fmt: skip
#: Methods that decide how many columns to keep: only these are run on noise tables.
DECIDING = ("auto", "boruta")


def measure(table: Table, method: str, **options: Any) -> dict[str, Any]:
    """Compare a selection with the relevant columns. A failed method counts as no selection."""
    start, error = process_time(), ""
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept, first = METHODS[method](table, **options)
    except Exception as raised:
        kept, first, error = [], [], f"{type(raised).__name__}: {raised}"
    seconds = process_time() - start
    relevant, sources = table.relevant, set(table.relevant.values())
    found = {relevant[name] for name in kept if name in relevant}  # a duplicate stands for both
    return table.facts | {
        "method": method, "seconds": seconds, "error": error, "kept": " ".join(kept),
        "recall": len(found) / len(sources) if sources else np.nan,
        "false": sum(name not in relevant for name in kept),
        "first": any(name in relevant for name in first) if sources else np.nan,
        "nothing": not len(kept),
    }  # fmt: skip


def summarize(results: pd.DataFrame) -> str:
    """Return means ± one standard error over tables, by kind of table and method."""
    found = results[~results.noise]
    best = found[(found.method == "lightgbm") & (found["first"] == 1)].seed
    kinds = {
        "all": found, "LightGBM's first relevant": found[found.seed.isin(best)],
        "noise date": found[found.date], "true date": found[found.true_date],
        "category of > 50 levels": found[found.levels > 50],
        "rare target (<= 5 %)": found[found.rate <= 0.05],
        "regression": found[found.task == "regression"], "group": found[found.groups],
        "leak": found[found.leak], "no leak": found[~found.leak],
        "clear signal": found[found.clear], "weak signal": found[~found.clear],
        "noise only": results[results.noise],
    }  # fmt: skip
    measures = ["recall", "false", "first", "nothing"]
    lines = [f"{'tables':26}{'n':>4} {'method':12}" + "".join(f"{m:>15}" for m in measures)]
    for kind, tables in kinds.items():
        for method, rows in tables.groupby("method", sort=False):
            values = rows[measures].astype(float)
            cells = zip(values.mean(), values.sem(), strict=True)
            line = "".join(f"{mean:8.3f} ± {sem:.2f}" for mean, sem in cells)
            lines.append(f"{kind:26}{len(rows):4} {method:12}{line}")
    seconds = results.groupby("method", sort=False).seconds.median().round(1).to_dict()
    lines.append(f"median seconds of processor time: {seconds}")
    failed = results[results.error != ""].itertuples()
    lines += [f"seed {row.seed}, {row.method}: {row.error}" for row in failed]
    return "\n".join(lines)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure the methods on tables of consecutive seeds and print the summary."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--noise-tables", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first table")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--max-rows", type=int, default=max(ROWS))
    parser.add_argument("--budget", type=float, help="time budget of Auto in seconds")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--out", help="CSV file with one line per table and method")
    asked = parser.parse_args(arguments)
    methods = asked.methods.split(",")
    if unknown := sorted({*methods} - {*METHODS}):
        parser.error(f"--methods takes {', '.join(METHODS)}, not {', '.join(unknown)}")

    def measured(seed: int, noise: bool) -> list[dict[str, Any]]:
        table = make_table(seed, noise=noise, max_rows=asked.max_rows)
        options = {"auto": {"budget": asked.budget}}
        chosen = [method for method in methods if not noise or method in DECIDING]
        return [measure(table, method, **options.get(method, {})) for method in chosen]

    counts = {False: asked.tables, True: asked.noise_tables}
    jobs = sorted((asked.seed + j, noise) for noise, n in counts.items() for j in range(n))
    results = pd.DataFrame()
    for rows in Parallel(asked.workers, return_as="generator")(delayed(measured)(*j) for j in jobs):
        results = pd.concat([results, pd.DataFrame(rows)], ignore_index=True)
        if asked.out:
            results.to_csv(asked.out, index=False)
    print(summarize(results))


if __name__ == "__main__":
    # worker processes can import functions of this module, but not those of __main__
    from benchmarks.known_truth import main as run

    run(sys.argv[1:])
